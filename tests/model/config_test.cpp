// Goal: impossible models are refused with the key and a way out; layers are numbered as
// documented.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holmes/model/gpt.hpp"

namespace holmes::model {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const GptConfig& config) {
  const Status status = validate(config);
  EXPECT_FALSE(status);
  if (status) return "";
  EXPECT_EQ(status.error().code(), ErrorCode::kInvalidArgument);
  return status.error().message();
}

TEST(GptConfig, TheDefaultIsValid) {
  EXPECT_TRUE(validate(GptConfig{}));
}

TEST(GptConfig, HeadsMustDivideChannels) {
  EXPECT_THAT(refusal({.heads = 7, .channels = 384}),
              AllOf(HasSubstr("model.heads = 7"), HasSubstr("384"), HasSubstr("is 6")));
  EXPECT_THAT(refusal({.heads = 400, .channels = 384}), HasSubstr("is 384"));
}

TEST(GptConfig, ZerosAndGiantsAreRefusedByName) {
  EXPECT_THAT(refusal({.layers = 0}), HasSubstr("model.layers"));
  EXPECT_THAT(refusal({.heads = 0}), HasSubstr("model.heads"));
  EXPECT_THAT(refusal({.channels = 0}), HasSubstr("model.channels"));
  EXPECT_THAT(refusal({.sequence = 0}), HasSubstr("model.sequence"));
  EXPECT_THAT(refusal({.vocabulary = 0}), HasSubstr("model.vocabulary"));
  EXPECT_THAT(refusal({.vocabulary_padding = 0}), HasSubstr("model.vocabulary_padding"));
  EXPECT_THAT(refusal({.layers = 5000}), HasSubstr("at most 4096"));
  EXPECT_THAT(refusal({.vocabulary = 1U << 25}), HasSubstr("model.vocabulary"));
}

TEST(GptConfig, TheVocabularyIsRoundedUp) {
  EXPECT_EQ((GptConfig{.vocabulary = 50257, .vocabulary_padding = 128}).padded_vocabulary(),
            50304U);
  EXPECT_EQ((GptConfig{.vocabulary = 256}).padded_vocabulary(), 256U);
}

TEST(LayerNumbers, CountTheWholeModel) {
  const GptConfig config{.layers = 3};
  EXPECT_THAT(layer_numbers(config, whole_model(config)), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(layer_numbers(config, {.first_block = 1, .block_count = 2}), ElementsAre(2, 3));
  EXPECT_THAT(layer_numbers(config, {.first_block = 3, .block_count = 0, .head = true}),
              ElementsAre(4));
}

}  // namespace
}  // namespace holmes::model
