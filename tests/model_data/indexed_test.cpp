// Goal: a data set that is not what it claims to be is refused with what was expected, and a writer
// that fails leaves nothing. Method: good files with one field changed.
#include "holmes/model/indexed.hpp"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holmes/model/data.hpp"
#include "support/temporary_folder.hpp"

namespace holmes::model {
namespace {

using ::holmes::testing::read_file;
using ::holmes::testing::TemporaryFolder;
using ::testing::HasSubstr;

/// Two documents of 3 and 2 tokens; 34 bytes of header, then lengths, offsets, documents.
class IndexedTest : public ::testing::Test {
 protected:
  IndexedTest() {
    auto writer = IndexedWriter::begin(prefix_, 300);
    const std::vector<std::int32_t> first = {1, 2, 299};
    const std::vector<std::int32_t> second = {4, 5};
    EXPECT_TRUE(writer->add(first) && writer->end_document());
    EXPECT_TRUE(writer->end_document());  // without tokens: left out
    EXPECT_TRUE(writer->add(second));
    EXPECT_TRUE(writer->finish());
    index_ = read_file(folder_.path() / "set.idx");
  }

  template <class T>
  std::string refusal_of(std::size_t at, T value) {
    std::string changed = index_;
    std::memcpy(changed.data() + at, &value, sizeof(value));
    return refusal(changed);
  }
  std::string refusal(const std::string& index) {
    folder_.write("set.idx", index);
    const auto file = open_indexed_tokens(prefix_, 300);
    if (file) return "no error";
    EXPECT_EQ(file.error().code(), ErrorCode::kCorrupt);
    return file.error().message();
  }

  TemporaryFolder folder_;
  std::filesystem::path prefix_ = folder_.path() / "set";
  std::string index_;
};

TEST_F(IndexedTest, ReadsItself) {
  const auto file = open_indexed_tokens(prefix_, 300);
  ASSERT_TRUE(file) << file.error().message();
  std::vector<std::int32_t> tokens(3);
  (*file)->read(2, tokens);
  EXPECT_THAT(tokens, ::testing::ElementsAre(299, 4, 5));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "set.idx.tmp"));
}

TEST_F(IndexedTest, SaysWhatWasExpected) {
  EXPECT_THAT(refusal_of<char>(0, 'X'), HasSubstr("does not begin with MMIDIDX"));
  EXPECT_THAT(refusal_of<std::uint64_t>(9, 2), HasSubstr("version 2; only version 1"));
  EXPECT_THAT(refusal_of<std::uint8_t>(17, 6), HasSubstr("element type 6"));
  EXPECT_THAT(refusal_of<std::uint8_t>(17, 4),
              HasSubstr("sequence 0 ends at byte 12, but the .bin has 10"));
  EXPECT_THAT(refusal_of<std::uint64_t>(18, 3), HasSubstr("need 94; was it cut short?"));
  EXPECT_THAT(refusal_of<std::uint64_t>(18, ~0ULL / 3), HasSubstr("need more"));
  EXPECT_THAT(refusal_of<std::uint64_t>(26, 0), HasSubstr("at least one is needed"));
  EXPECT_THAT(refusal_of<std::int32_t>(34, -1), HasSubstr("has -1 tokens"));
  EXPECT_THAT(refusal_of<std::int32_t>(38, 3), HasSubstr("ends at byte 12, but the .bin has 10"));
  EXPECT_THAT(refusal_of<std::int32_t>(38, 1), HasSubstr("have 8 bytes, the .bin has 10"));
  EXPECT_THAT(refusal_of<std::int64_t>(50, 4), HasSubstr("sequence 1 begins at byte 4"));
  EXPECT_THAT(refusal_of<std::int64_t>(58, 1), HasSubstr("document entry 0 is 1, expected 0"));
  EXPECT_THAT(refusal_of<std::int64_t>(74, 1), HasSubstr("is 1, expected 2, the number of"));
  EXPECT_THAT(refusal(index_.substr(0, 70)), HasSubstr("it has 70 bytes"));
  EXPECT_THAT(refusal(""), HasSubstr("does not begin"));
}

TEST_F(IndexedTest, NamesATokenOutsideTheVocabulary) {
  const auto file = open_indexed_tokens(prefix_, 299);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(file.error().message(), HasSubstr("token 2 is 299, but model.vocabulary is 299"));
  EXPECT_THAT(open_indexed_tokens(folder_.path() / "none", 9).error().message(),
              HasSubstr("none.idx does not exist"));
}

TEST_F(IndexedTest, NoticesThatItsTokensBecomeOthers) {
  const auto file = open_indexed_tokens(prefix_, 300);
  ASSERT_TRUE(file);
  const std::string tokens = read_file(folder_.path() / "set.bin");
  folder_.write("set.bin", tokens + "more");
  EXPECT_TRUE((*file)->unchanged());
  folder_.write("set.bin", std::string(tokens.size(), '\1'));
  const auto status = (*file)->unchanged();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message(), HasSubstr("token file " + prefix_.string() + ".bin was"));
}

TEST(IndexedWriter, LeavesNothingUnlessItFinishes) {
  const TemporaryFolder folder;
  {
    auto writer = IndexedWriter::begin(folder.path() / "a", 300);
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->add(std::vector<std::int32_t>{1}));
  }
  {
    auto writer = IndexedWriter::begin(folder.path() / "b", 300);
    EXPECT_THAT(writer->finish().error().message(), HasSubstr("no token would be written"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_FALSE(IndexedWriter::begin(folder.path() / "no" / "folder", 300));
}

}  // namespace
}  // namespace holmes::model
