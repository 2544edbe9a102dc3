// Goal: documents come out of text, JSON lines, gzip and folders as they went in, piece by piece,
// and damaged input is named. Method: small files, one long one, gzip written with zlib.
#include "holmes/model/documents.hpp"

#include <zlib.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holmes/model/tokenizer.hpp"
#include "support/temporary_folder.hpp"

namespace holmes::model {
namespace {

using ::holmes::testing::read_file;
using ::holmes::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<std::vector<std::string>> documents(const DocumentSource& source) {
  HOLMES_TRY_ASSIGN(auto reader, DocumentReader::open(source));
  std::vector<std::string> result(1);
  DocumentPiece piece;
  for (;;) {
    HOLMES_TRY_ASSIGN(const bool found, reader.next(piece));
    if (!found) break;
    result.back() += piece.text;
    if (piece.ends_document) result.emplace_back();
  }
  result.pop_back();
  EXPECT_EQ(reader.bytes_read(), reader.bytes_total());
  return result;
}

void write_gzip(const std::filesystem::path& path, const std::string& content) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
}

TEST(Documents, AreFilesOfTextInTheOrderGiven) {
  const TemporaryFolder folder;
  const auto b = folder.write("b.txt", "bee\n");
  const auto a = folder.write("a.txt", std::string("a\0\xff", 3));
  const auto found = documents({{b, a}});
  ASSERT_TRUE(found);
  EXPECT_THAT(*found, ElementsAre("bee\n", std::string("a\0\xff", 3)));
}

TEST(Documents, AreLinesOfJson) {
  const TemporaryFolder folder;
  const auto file = folder.write("a.jsonl",
                                 "{\"text\":\"one\\n\"}\n\n{\"text\":\"\",\"x\":1}\n"
                                 "{\"text\":\"\\u00e9\"}");
  const auto found = documents({{file}});
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_THAT(*found, ElementsAre("one\n", "", "\u00e9"));
  EXPECT_THAT(documents({{file}, "body"}).error().message(),
              AllOf(HasSubstr("a.jsonl:1: "), HasSubstr("no key \"body\"")));
  const auto bad = [&](const std::string& line) {
    const auto result = documents({{folder.write("b.jsonl", "{\"text\":\"\"}\n" + line)}});
    EXPECT_EQ(result.error().code(), ErrorCode::kCorrupt);
    return result.error().message();
  };
  EXPECT_THAT(bad("{\"text\":"), HasSubstr("b.jsonl:2: no valid JSON"));
  EXPECT_THAT(bad("[]"), HasSubstr("b.jsonl:2: no JSON object"));
  EXPECT_THAT(bad("{\"text\":1}"), HasSubstr("\"text\" is no text"));
}

TEST(Documents, OfFoldersAndGzip) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "in" / ".hidden");
  folder.write("in/2.txt", "two");
  folder.write("in/.hidden/3.txt", "three");
  write_gzip(folder.path() / "in" / "1.jsonl.gz", "{\"text\":\"one\"}\n");
  const auto found = documents({{folder.path() / "in"}});
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_THAT(*found, ElementsAre("one", "two"));
}

TEST(Documents, DamagedGzipIsNamed) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i * 7919);
  write_gzip(folder.path() / "a.gz", text);
  const auto whole = read_file(folder.path() / "a.gz");
  const auto cut = documents({{folder.write("b.gz", whole.substr(0, whole.size() / 2))}});
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(cut.error().message(), HasSubstr("b.gz: damaged gzip data"));
  auto changed = whole;
  changed[changed.size() / 2] = static_cast<char>(changed[changed.size() / 2] ^ 0x55);
  EXPECT_FALSE(documents({{folder.write("c.gz", changed)}}));
}

TEST(Documents, LongTextIsCutWhereTokensEnd) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; text.size() < 5'000'000; ++i) text += "word" + std::to_string(i) + " it's\n\n ok";
  BpeTrainer trainer;
  trainer.add(std::string_view(text).substr(0, 10'000));
  const auto tokenizer = *parse_tokenizer_json(*trainer.train(300), "t");
  const auto encoder = tokenizer->make_encoder(SpecialTokens::kAsText);
  std::vector<std::int32_t> at_once;
  encoder->encode(text, at_once);
  auto reader = DocumentReader::open({{folder.write("a.txt", text)}});
  ASSERT_TRUE(reader);
  std::vector<std::int32_t> in_pieces;
  DocumentPiece piece;
  int pieces = 0;
  while (*reader->next(piece)) {
    ++pieces;
    EXPECT_LT(piece.text.size(), 3'000'000);
    encoder->encode(piece.text, in_pieces);
  }
  EXPECT_GT(pieces, 2);
  EXPECT_EQ(in_pieces, at_once);
}

TEST(Documents, MissingInputIsNamed) {
  const TemporaryFolder folder;
  EXPECT_THAT(documents({{folder.path() / "no"}}).error().message(), HasSubstr("does not exist"));
  EXPECT_THAT(documents({{folder.path()}}).error().message(), HasSubstr("without files"));
  EXPECT_THAT(documents({}).error().message(), HasSubstr("no input"));
}

}  // namespace
}  // namespace holmes::model
