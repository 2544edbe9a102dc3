// Goal: byte-level BPE loses no byte, does what its files say, refuses what it cannot do, and can
// be learned from a text. Method: small vocabularies written here, random bytes, and GPT-2's rule
// by hand against the same rule as a regular expression.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "holmes/base/random.hpp"
#include "holmes/model/tokenizer.hpp"
#include "support/temporary_folder.hpp"
#include "tokenizer/byte_alphabet.hpp"
#include "tokenizer/splitter.hpp"
#include "tokenizer/utf8.hpp"

namespace holmes::model {
namespace {

using ::holmes::testing::TemporaryFolder;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json byte_level() {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
}

/// Bytes, "he" 256, "ll" 257, "hell" 258, "hello" 259, and a special token 260.
json hello() {
  json vocab;
  for (unsigned i = 0; i < 256; ++i)
    vocab[to_byte_alphabet(std::string(1, static_cast<char>(byte_of_rank(i))))] = i;
  const char* tokens[] = {"he", "ll", "hell", "hello"};
  for (unsigned i = 0; i < 4; ++i) vocab[tokens[i]] = 256 + i;
  return {{"added_tokens", {{{"id", 260}, {"content", "<|endoftext|>"}, {"special", true}}}},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level()},
          {"model",
           {{"type", "BPE"},
            {"vocab", vocab},
            {"merges", {"h e", json::array({"l", "l"}), "he ll", "hell o"}}}}};
}

std::unique_ptr<Tokenizer> made(const json& object) {
  auto result = parse_tokenizer_json(object.dump(), "t.json");
  EXPECT_TRUE(result) << result.error().message();
  return std::move(*result);
}

std::string refusal(const json& object) {
  const auto result = parse_tokenizer_json(object.dump(), "t.json");
  if (result) return "no error";
  EXPECT_EQ(result.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(result.error().message(), HasSubstr("t.json: "));
  return result.error().message();
}

std::vector<std::int32_t> as_text(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::int32_t> ids;
  tokenizer.make_encoder(SpecialTokens::kAsText)->encode(text, ids);
  return ids;
}

std::string random_text(Random& random) {
  constexpr std::string_view kParts[] = {" ", "'", "s",    "hello",  "é",      "\u0416", "漢",
                                         "😀", "7", "\n",   "\t",     "\xff",   "\xc3",   "\xe2\x82",
                                         "½", "!", "\xa0", "\u00a0", "\u2003", "'ll",    "\u180e"};
  std::string text;
  for (auto n = random.below(30); n-- > 0;) text += kParts[random.below(std::size(kParts))];
  return text;
}

TEST(Bpe, MergesInOrder) {
  const auto tokenizer = made(hello());
  EXPECT_THAT(tokenizer->encode("hello hell"), ElementsAre(259, 220, 258));
  EXPECT_EQ(tokenizer->vocabulary(), 261);
}

TEST(Bpe, SpecialTokensAreParsedOnlyWhenAsked) {
  const auto tokenizer = made(hello());
  EXPECT_THAT(tokenizer->encode("he<|endoftext|>he"), ElementsAre(256, 260, 256));
  const auto text = as_text(*tokenizer, "<|endoftext|>");
  EXPECT_EQ(text.size(), 13);
  EXPECT_EQ(tokenizer->decode(text), "<|endoftext|>");
  EXPECT_EQ(tokenizer->decode(std::vector{260}), "<|endoftext|>");
}

TEST(Bpe, NoByteIsLost) {
  const auto tokenizer = made(hello());
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const auto text = random_text(random);
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(all)), all);
}

TEST(Bpe, LongAndShortPiecesAreMergedAlike) {
  const auto tokenizer = made(hello());
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "hello";
  const auto ids = tokenizer->encode(text);
  EXPECT_EQ(ids, std::vector<std::int32_t>(5000, 259));
  EXPECT_EQ(tokenizer->encode(std::string(100'001, 'l')).size(), 50'001);
}

TEST(Bpe, WholeTokensGoBeforeMergesWhereTheFileSaysSo) {
  auto object = hello();
  object["model"]["merges"] = json::array({"h e"});
  EXPECT_EQ(made(object)->encode("hello").size(), 4);
  object["model"]["ignore_merges"] = true;
  EXPECT_THAT(made(object)->encode("hello"), ElementsAre(259));
}

TEST(Bpe, NormalizersAndOtherRules) {
  auto object = hello();
  object["normalizer"] = {{"type", "NFC"}};
  const auto tokenizer = made(object);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("e\u0301")), "\u00e9");
  object["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"String", "l"}}}, {"behavior", "Isolated"}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  EXPECT_THAT(made(object)->encode("hello").size(), 4);  // he l l o
  object["pre_tokenizer"] = {{"type", "ByteLevel"}};     // a blank before it is the default
  EXPECT_EQ(made(object)->decode(made(object)->encode("he")), " he");
}

TEST(Bpe, RefusesWhatItCannotDoByName) {
  const auto with = [](const char* path, json value) {
    auto object = hello();
    object[json::json_pointer(path)] = std::move(value);
    return refusal(object);
  };
  EXPECT_THAT(with("/model/type", "Unigram"), HasSubstr("only \"BPE\""));
  EXPECT_THAT(with("/model/byte_fallback", true), HasSubstr("byte_fallback"));
  EXPECT_THAT(with("/model/vocab/he", 5), HasSubstr("given twice"));
  EXPECT_THAT(with("/model/vocab/he", -1), HasSubstr("no whole number"));
  EXPECT_THAT(with("/model/vocab/he", 4'000'000'000U), HasSubstr("no whole number"));
  EXPECT_THAT(with("/model/merges/0", "h x"), HasSubstr("merge 1: \"hx\" is no token"));
  EXPECT_THAT(with("/model/merges/0", "hx"), HasSubstr("a blank between"));
  EXPECT_THAT(with("/normalizer", json{{"type", "Lowercase"}}), HasSubstr("\"Lowercase\""));
  EXPECT_THAT(with("/pre_tokenizer", json{{"type", "Metaspace"}}), HasSubstr("\"Metaspace\""));
  EXPECT_THAT(with("/pre_tokenizer", nullptr), HasSubstr("no ByteLevel"));
  EXPECT_THAT(with("/added_tokens/0/lstrip", true), HasSubstr("\"lstrip\""));
  EXPECT_THAT(with("/added_tokens/0/id", 5), HasSubstr("another token's"));
  auto few = hello();
  few["model"]["vocab"].erase("!");
  EXPECT_THAT(refusal(few), HasSubstr("byte 33 (\"!\") has no token"));
  EXPECT_THAT(refusal(json::array()), HasSubstr("an object is expected"));
}

TEST(Bpe, BadRegularExpressionsAreNamed) {
  auto object = hello();
  object["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"Regex", "(a"}}}, {"behavior", "Isolated"}};
  EXPECT_THAT(refusal(object), HasSubstr("\"(a\" is not understood"));
}

TEST(Gpt2Rule, IsTheRegularExpression) {
  const auto by_hand = make_gpt2_rule();
  // In a group, so that it is not recognised.
  const auto by_regex = make_regex_rule("(?:" + std::string(kGpt2Pattern) + ")");
  ASSERT_TRUE(by_regex);
  Random random(2);
  for (int i = 0; i < 5000; ++i) {
    auto text = random_text(random);
    text.resize(valid_prefix(text));
    std::vector<std::size_t> expected;
    std::vector<std::size_t> ends;
    (*by_regex)->split(text, expected);
    by_hand->split(text, ends);
    EXPECT_EQ(ends, expected) << text;
  }
}

TEST(BpeTrainer, LearnsFrequentPairsFirstAndReadsItselfBack) {
  BpeTrainer trainer;
  trainer.add("low low low lower lower newest newest newest newest \xff widest");
  const auto content = trainer.train(300);
  ASSERT_TRUE(content);
  const auto tokenizer = parse_tokenizer_json(*content, "trained");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  EXPECT_EQ((*tokenizer)->end_of_document(),
            static_cast<std::int32_t>((*tokenizer)->vocabulary()) - 1);
  EXPECT_THAT((*tokenizer)->encode(" newest").size(), 1);
  EXPECT_EQ(json::parse(*content)["model"]["merges"][0], "w e");  // 6 times
  EXPECT_EQ(*content, *trainer.train(300));
}

TEST(BpeTrainer, StopsWhereAskedAndRefusesLessThanBytes) {
  BpeTrainer trainer;
  trainer.add("abc abc abc abd");
  const auto tokenizer = parse_tokenizer_json(*trainer.train(259), "trained");
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ((*tokenizer)->vocabulary(), 259);
  EXPECT_THAT(trainer.train(256).error().message(), HasSubstr("need 257"));
}

TEST(Tokenizer, IsFoundByNameBesideACheckpoint) {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", hello().dump());
  const auto tokenizer = make_tokenizer(folder.path().string());
  ASSERT_TRUE(tokenizer);
  EXPECT_TRUE(find_tokenizer((*tokenizer)->name(), folder.path()));
  EXPECT_THAT(find_tokenizer("bpe-0", folder.path()).error().message(),
              HasSubstr("not those of the model"));
  const TemporaryFolder empty;
  EXPECT_THAT(make_tokenizer(empty.path().string()).error().message(),
              HasSubstr("is a folder without a tokenizer"));
}

}  // namespace
}  // namespace holmes::model
