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

GptConfig llama() {
  GptConfig config{.heads = 6, .channels = 384};
  config.family = Family::kLlama;
  return config;
}

TEST(GptConfig, LlamaFillsInWhatIsNotGiven) {
  const GptConfig config = llama();
  EXPECT_TRUE(validate(config));
  EXPECT_EQ(config.kv_head_count(), 6U);
  EXPECT_EQ(config.head_width(), 64U);
  EXPECT_EQ(config.feed_forward_width(), 1024U);
  EXPECT_FALSE(config.tied());
  EXPECT_TRUE(GptConfig{}.tied());
  // The published widths of 7B and 13B.
  EXPECT_EQ((GptConfig{.channels = 4096, .family = Family::kLlama}).feed_forward_width(), 11008U);
  EXPECT_EQ((GptConfig{.channels = 5120, .family = Family::kLlama}).feed_forward_width(), 13824U);
}

TEST(GptConfig, LlamaThatCannotBeIsRefused) {
  auto config = llama();
  config.kv_heads = 4;
  EXPECT_THAT(refusal(config), AllOf(HasSubstr("model.kv_heads = 4 does not divide"),
                                     HasSubstr("model.heads = 6"), HasSubstr("is 3")));
  config = llama();
  config.head_channels = 33;
  EXPECT_THAT(refusal(config), AllOf(HasSubstr("33 channels"), HasSubstr("even")));
  config = llama();
  config.heads = 5;
  EXPECT_THAT(refusal(config), HasSubstr("model.heads = 5 does not divide model.channels"));
  config.head_channels = 80;
  EXPECT_TRUE(validate(config));
  config = llama();
  config.norm_epsilon = 0;
  EXPECT_THAT(refusal(config), HasSubstr("model.norm_epsilon"));
  config = llama();
  config.rope.theta = 0;
  EXPECT_THAT(refusal(config), HasSubstr("model.rope_theta"));
  config = llama();
  config.rope = {.factor = 0.5};
  EXPECT_THAT(refusal(config), HasSubstr("model.rope_factor"));
  config.rope = {.factor = 8, .low_factor = 4, .high_factor = 4};
  EXPECT_THAT(refusal(config), HasSubstr("model.rope_high_factor"));
}

TEST(GptConfig, Gpt2HasNoKeysOfLlama) {
  EXPECT_THAT(refusal({.kv_heads = 2}), AllOf(HasSubstr("model.kv_heads is a key of Llama"),
                                              HasSubstr("model.family = \"llama\"")));
  EXPECT_THAT(refusal({.head_channels = 64}), HasSubstr("model.head_channels"));
  EXPECT_THAT(refusal({.feed_forward = 64}), HasSubstr("model.feed_forward"));
  EXPECT_THAT(refusal({.norm_epsilon = 1e-6}), HasSubstr("model.norm_epsilon"));
  EXPECT_THAT(refusal({.rope = {.theta = 1e6}}), HasSubstr("model.rope_theta"));
  EXPECT_THAT(refusal({.rope = {.factor = 8}}), HasSubstr("model.rope_factor"));
  EXPECT_THAT(refusal({.head = Head::kUntied}), HasSubstr("model.head = \"untied\""));
  EXPECT_TRUE(validate({.head = Head::kTied}));
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
