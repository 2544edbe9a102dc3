// Goal: Megatron's data sets are read and written byte for byte as others do. Method: files made by
// make_megatron.py, from the format's description alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/temporary_folder.hpp"
#include "holmes/model/data.hpp"
#include "holmes/model/indexed.hpp"

namespace holmes::model {
namespace {

using ::holmes::testing::read_file;
using ::holmes::testing::TemporaryFolder;

const std::vector<std::vector<std::int32_t>> kDocuments = {{0, 1, 2, 3, 65498}, {7}, {10, 11, 12}};
const std::vector<std::int32_t> kTokens = {0, 1, 2, 3, 65498, 7, 10, 11, 12};

struct Case {
  const char* name;
  std::uint32_t vocabulary;
  TokenType type;
};
constexpr Case kCases[] = {{"megatron_u16", 65499, TokenType::kU16},
                           {"megatron_i32", 65500, TokenType::kI32}};

std::filesystem::path prefix_of(const Case& each) {
  return std::filesystem::path(HOLMES_GOLDEN_FOLDER) / each.name;
}

TEST(MegatronGolden, IsRead) {
  for (const auto& each : kCases) {
    const auto file = open_indexed_tokens(prefix_of(each), each.vocabulary);
    ASSERT_TRUE(file) << file.error().message();
    std::vector<std::int32_t> tokens((*file)->token_count());
    (*file)->read(0, tokens);
    EXPECT_EQ(tokens, kTokens);
    const auto facts = inspect_indexed(prefix_of(each), each.vocabulary);
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->type, each.type);
    EXPECT_EQ(facts->documents, 3);
  }
}

TEST(MegatronGolden, IsWrittenWithTheSameBytes) {
  for (const auto& each : kCases) {
    const TemporaryFolder folder;
    const auto prefix = folder.path() / "ours";
    auto writer = IndexedWriter::begin(prefix, each.vocabulary);
    ASSERT_TRUE(writer);
    for (const auto& document : kDocuments) {
      ASSERT_TRUE(writer->add(std::span(document).first(1)));
      ASSERT_TRUE(writer->add(std::span(document).subspan(1)));
      ASSERT_TRUE(writer->end_document());
    }
    ASSERT_TRUE(writer->finish());
    for (const char* suffix : {".bin", ".idx"}) {
      EXPECT_EQ(read_file(prefix.string() + suffix), read_file(prefix_of(each).string() + suffix));
    }
  }
}

}  // namespace
}  // namespace holmes::model
