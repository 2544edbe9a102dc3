// Goal: the ids of another program, gpt-tokenizer, on text in many scripts, emoji, control
// characters and long runs. Method: data/bpe, made by make_tokenizer_golden.js, read in both forms
// that such vocabularies come in.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "holmes/model/tokenizer.hpp"

namespace holmes::model {
namespace {

const std::filesystem::path kFolder = HOLMES_BPE_FOLDER;

void expect_same_ids(const Tokenizer& tokenizer) {
  const auto cases = nlohmann::json::parse(std::ifstream(kFolder / "ids.json"));
  ASSERT_GT(cases.size(), 150);
  const auto encoder = tokenizer.make_encoder(SpecialTokens::kAsText);
  for (const auto& item : cases) {
    const auto text = item.at("text").get<std::string>();
    std::vector<std::int32_t> ids;
    encoder->encode(text, ids);
    EXPECT_EQ(ids, item.at("ids").get<std::vector<std::int32_t>>()) << text;
    EXPECT_EQ(tokenizer.decode(ids), text);
  }
}

TEST(TokenizerGolden, VocabularyAndMerges) {
  const auto tokenizer = make_tokenizer((kFolder / "vocab.json").string());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  EXPECT_EQ((*tokenizer)->vocabulary(), 1757);
  EXPECT_EQ((*tokenizer)->end_of_document(), 1756);
  expect_same_ids(**tokenizer);
}

TEST(TokenizerGolden, TokenizerJson) {
  const auto tokenizer = make_tokenizer(kFolder.string());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  EXPECT_EQ((*tokenizer)->vocabulary(), 1757);
  EXPECT_EQ((*tokenizer)->files()[0].name, "tokenizer.json");
  expect_same_ids(**tokenizer);
}

}  // namespace
}  // namespace holmes::model
