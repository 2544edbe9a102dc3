// Goal: what we write is the documented format, bit for bit, and nothing that is not gets read.
// Method: round trips; a reader written here from the format's description, independent of ours;
// headers that break each rule; disks that are full.
#include "holmes/model/safetensors.hpp"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "small_disk.hpp"
#include "support/temporary_folder.hpp"

namespace holmes::model {
namespace {

using ::holmes::testing::FileSizeLimit;
using ::holmes::testing::read_file;
using ::holmes::testing::SmallDisk;
using ::holmes::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

/// A file as the format lays it out: length, JSON, data.
std::string layout(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(length >> (8 * i) & 0xFF);
  return file + header + data;
}

Result<SafetensorsHeader> parse(const std::string& content) {
  return parse_safetensors(std::as_bytes(std::span(content.data(), content.size())), "x");
}

std::string error_of(const std::string& content) {
  const auto header = parse(content);
  if (header) return "no error";
  EXPECT_EQ(header.error().code(), ErrorCode::kCorrupt);
  return header.error().message();
}

TEST(Safetensors, ReadsBackWhatItWrote) {
  const TemporaryFolder folder;
  const std::vector<float> matrix = {1.5F, -2.0F, 0.0F, -0.0F, 1e-45F, 3e38F};
  const std::vector<std::uint8_t> flags = {1, 0, 1};
  const std::vector<double> scalar = {0.1};
  const std::vector<TensorToWrite> tensors = {{"flags", Dtype::kBool, {3}, bytes_of(flags)},
                                              {"matrix", Dtype::kF32, {2, 3}, bytes_of(matrix)},
                                              {"scalar", Dtype::kF64, {}, bytes_of(scalar)},
                                              {"none", Dtype::kF32, {0, 7}, {}}};
  const auto path = folder.path() / "a.safetensors";
  const auto written = write_safetensors(path, tensors, {{"format", "pt"}});
  ASSERT_TRUE(written) << written.error().message();
  EXPECT_EQ(written->name, "a.safetensors");
  EXPECT_EQ(written->bytes, std::filesystem::file_size(path));
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".part"));

  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->hash(), written->hash);
  EXPECT_EQ(file->file_bytes(), written->bytes);
  EXPECT_EQ(file->metadata().at("format"), "pt");
  EXPECT_EQ(file->tensors().size(), 4);
  EXPECT_EQ(file->find("absent"), nullptr);
  for (const auto& tensor : tensors) {
    const auto* info = file->find(tensor.name);
    ASSERT_NE(info, nullptr) << tensor.name;
    EXPECT_EQ(info->dtype, tensor.dtype);
    EXPECT_EQ(info->shape, tensor.shape);
    EXPECT_EQ(info->begin % element_bytes(info->dtype), 0) << "aligned for a mapped reader";
    const auto bytes = file->bytes(*info);
    ASSERT_EQ(bytes.size(), tensor.bytes.size());
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), tensor.bytes.begin()));
  }
}

TEST(Safetensors, WritesTheDocumentedLayout) {
  const TemporaryFolder folder;
  const std::vector<float> a = {1.0F, 2.0F};
  const std::vector<float> b = {-3.5F};
  const std::vector<TensorToWrite> tensors = {{"a", Dtype::kF32, {2, 1}, bytes_of(a)},
                                              {"b", Dtype::kF32, {1}, bytes_of(b)}};
  const auto path = folder.path() / "a.safetensors";
  ASSERT_TRUE(write_safetensors(path, tensors));
  // By hand: u64 little-endian length, JSON padded with blanks to 8, then the data.
  const std::string file = read_file(path);
  ASSERT_GT(file.size(), 8U);
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    length |= std::uint64_t{static_cast<unsigned char>(file[i])} << (8 * i);
  }
  EXPECT_EQ(length % 8, 0);
  ASSERT_EQ(file.size(), 8 + length + 12);
  const std::string json = file.substr(8, length);
  EXPECT_EQ(json.substr(0, json.find_last_not_of(' ') + 1),
            R"({"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
            R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})");
  EXPECT_EQ(file.substr(8 + length),
            std::string("\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x60\xc0", 12));
}

TEST(Safetensors, ReadsFilesOfOtherWriters) {
  // No padding, other key order, tensors listed out of order, unicode name, metadata.
  const std::string header =
      R"({ "z\u00e9" : {"data_offsets":[4,6],"shape":[1],"dtype":"BF16"},)"
      R"("__metadata__":{"format":"pt"}, "a":{"shape":[1],"data_offsets":[0,4],"dtype":"I32"}} )";
  const auto parsed = parse(layout(header, "abcdef"));
  ASSERT_TRUE(parsed) << parsed.error().message();
  ASSERT_EQ(parsed->tensors.size(), 2);
  EXPECT_EQ(parsed->tensors[0].name, "a");
  EXPECT_EQ(parsed->tensors[0].begin, 8 + header.size());
  EXPECT_EQ(parsed->tensors[1].name, "z\u00e9");
  EXPECT_EQ(parsed->tensors[1].bytes, 2);
  EXPECT_TRUE(parse(layout("{}", "")));
}

TEST(Safetensors, RefusesBrokenFrames) {
  EXPECT_THAT(error_of("abc"), AllOf(HasSubstr("x: "), HasSubstr("3 bytes")));
  EXPECT_THAT(error_of(layout("{}", "").substr(0, 9)), HasSubstr("cut short"));
  EXPECT_THAT(error_of(std::string(8, '\xff') + "{}"), HasSubstr("no safetensors file"));
  EXPECT_THAT(error_of(layout("", "")), HasSubstr("no JSON object"));
  EXPECT_THAT(error_of(layout("[]", "")), HasSubstr("no JSON object"));
  EXPECT_THAT(error_of(layout("{\"a\":", "")), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of(layout("{\"a\":1}}", "")), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of(layout("{}", "abc")), HasSubstr("3 bytes follow the last tensor"));
  std::string deep = "{\"a\":";
  for (int i = 0; i < 1000; ++i) deep += "[";
  EXPECT_THAT(error_of(layout(deep, "")), HasSubstr("nested too deeply"));
}

std::string tensor(const std::string& rest) {
  return R"({"w":{)" + rest + "}}";
}

TEST(Safetensors, RefusesBadEntriesAndNamesTheTensor) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"w":3})", "no object"},
      {tensor(R"("shape":[1],"data_offsets":[0,4])"), "no dtype"},
      {tensor(R"("dtype":"F31","shape":[1],"data_offsets":[0,4])"), "unknown dtype F31"},
      {tensor(R"("dtype":"F32","data_offsets":[0,4])"), "no valid shape"},
      {tensor(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), "no valid shape"},
      {tensor(R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])"), "no valid shape"},
      {tensor(R"("dtype":"F32","shape":[1])"), "no valid data_offsets"},
      {tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4,8])"), "no valid data_offsets"},
      {tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])"), "no valid data_offsets"},
      {tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), "need 8 bytes"},
      {tensor(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4])"),
       "need too many bytes"},
      {tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1)"), "unknown key"},
      {tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])"), "cut short"},
      {tensor(R"("dtype":"F32","shape":[0],"data_offsets":[2,2])"), "gap"},
      {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
       R"("w":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
       "overlaps"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
       R"("w":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
       "leaves a gap"},
      {R"({"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
       R"("w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
       "twice"},
  };
  for (const auto& [header, why] : cases) {
    EXPECT_THAT(error_of(layout(header, "abcd")), AllOf(HasSubstr("tensor w"), HasSubstr(why)))
        << header;
  }
  EXPECT_THAT(error_of(layout(R"({"__metadata__":{"a":1}})", "")), HasSubstr("metadata"));
  EXPECT_THAT(error_of(layout(R"({"__metadata__":[]})", "")), HasSubstr("metadata"));
}

TEST(Safetensors, RefusesEveryTruncation) {
  const TemporaryFolder folder;
  const std::vector<float> values(16, 1.0F);
  const std::vector<TensorToWrite> tensors = {{"a", Dtype::kF32, {8}, bytes_of(values).first(32)},
                                              {"b", Dtype::kF32, {8}, bytes_of(values).last(32)}};
  const auto path = folder.path() / "a.safetensors";
  ASSERT_TRUE(write_safetensors(path, tensors));
  const std::string whole = read_file(path);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    ASSERT_FALSE(parse(whole.substr(0, size))) << size;
  }
  EXPECT_THAT(error_of(whole.substr(0, whole.size() - 1)), HasSubstr("tensor b: is cut short"));
  EXPECT_THAT(error_of(whole.substr(0, whole.size() - 33)), HasSubstr("tensor a: is cut short"));
}

TEST(Safetensors, OpenNamesAMissingFile) {
  const auto file = SafetensorsFile::open("/nowhere/a.safetensors");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(file.error().message(), HasSubstr("/nowhere/a.safetensors"));
}

TEST(Safetensors, RefusesToWriteNonsense) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  const std::vector<float> one = {1.0F};
  const auto write = [&](const std::vector<TensorToWrite>& tensors) {
    const auto written = write_safetensors(path, tensors);
    EXPECT_FALSE(std::filesystem::exists(path));
    return written ? std::string("no error") : written.error().message();
  };
  const TensorToWrite good{"w", Dtype::kF32, {1}, bytes_of(one)};
  EXPECT_THAT(write({good, good}), HasSubstr("tensor w: given twice"));
  EXPECT_THAT(write({{"w", Dtype::kF32, {2}, bytes_of(one)}}), HasSubstr("needs 8 bytes"));
  EXPECT_THAT(write({{"__metadata__", Dtype::kF32, {1}, bytes_of(one)}}), HasSubstr("no name"));
  EXPECT_THAT(write({{"\xff", Dtype::kF32, {1}, bytes_of(one)}}), HasSubstr("UTF-8"));
}

void expect_no_room(const std::filesystem::path& folder) {
  const std::vector<float> large(100'000, 1.0F);
  const std::vector<TensorToWrite> tensors = {{"w", Dtype::kF32, {100'000}, bytes_of(large)}};
  const auto path = folder / "large.safetensors";
  const auto written = write_safetensors(path, tensors);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code(), ErrorCode::kOutOfResources);
  EXPECT_THAT(written.error().message(), AllOf(HasSubstr(path.string()), HasSubstr("needs 4000")));
  EXPECT_TRUE(std::filesystem::is_empty(folder)) << "a half file is left";
}

TEST(Safetensors, LeavesNothingOnAFullDisk) {
  const TemporaryFolder folder;
  {
    const FileSizeLimit limit(100'000);
    expect_no_room(folder.path());
  }
  const SmallDisk disk(folder.path(), 65536);
  if (!disk.mounted()) {
    std::cout << "not root: only the limit on file sizes was tried, not a full tmpfs\n";
    return;
  }
  expect_no_room(folder.path());
}

TEST(Safetensors, KeepsTheOldFileWhenANewOneDoesNotFit) {
  const TemporaryFolder folder;
  const std::vector<float> small = {1.0F};
  const std::vector<float> large(100'000, 2.0F);
  const auto path = folder.path() / "w.safetensors";
  const std::vector<TensorToWrite> before = {{"w", Dtype::kF32, {1}, bytes_of(small)}};
  const std::vector<TensorToWrite> after = {{"w", Dtype::kF32, {100'000}, bytes_of(large)}};
  const auto first = write_safetensors(path, before);
  ASSERT_TRUE(first);
  const FileSizeLimit limit(100'000);
  EXPECT_FALSE(write_safetensors(path, after));
  const auto kept = SafetensorsFile::open(path);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->hash(), first->hash);
}

}  // namespace
}  // namespace holmes::model
