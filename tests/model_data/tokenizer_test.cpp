// Goal: any text survives encode and decode, and unknown tokenizers are named.
#include "holmes/model/tokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holmes::model {
namespace {

TEST(ByteTokenizer, KeepsEveryByte) {
  const auto tokenizer = make_tokenizer("bytes");
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ((*tokenizer)->vocabulary(), 256);
  EXPECT_EQ((*tokenizer)->name(), "bytes");
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  const auto ids = (*tokenizer)->encode(all);
  ASSERT_EQ(ids.size(), 256);
  for (int i = 0; i < 256; ++i) EXPECT_EQ(ids[static_cast<std::size_t>(i)], i);
  EXPECT_EQ((*tokenizer)->decode(ids), all);
}

TEST(ByteTokenizer, DropsIdsOutsideTheVocabulary) {
  const auto tokenizer = make_tokenizer("bytes");
  ASSERT_TRUE(tokenizer);
  const std::vector<std::int32_t> ids = {'a', 256, -1, 'b', 300};
  EXPECT_EQ((*tokenizer)->decode(ids), "ab");
}

TEST(Tokenizer, RefusesUnknownNames) {
  const auto tokenizer = make_tokenizer("bpe");
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(tokenizer.error().message(), ::testing::HasSubstr("\"bpe\""));
}

}  // namespace
}  // namespace holmes::model
