#pragma once

// Files of named tensors in the safetensors format: 8 bytes with the header's length (little
// endian), the header (JSON: name -> dtype, shape, data_offsets), then the data without gaps.
// Written in one go from memory that the caller owns; read through a mapping, after every field of
// the header has been checked. Not a checkpoint: see checkpoint.hpp. Any thread, one at a time.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holmes/base/result.hpp"

namespace holmes::model {

enum class Dtype : std::uint8_t {
  kBool,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kU16,
  kI16,
  kF16,
  kBF16,
  kU32,
  kI32,
  kF32,
  kU64,
  kI64,
  kF64,
};
/// As the format spells it, e.g. "F32".
std::string_view to_string(Dtype dtype);
std::uint32_t element_bytes(Dtype dtype);

/// What a finished file is known by.
struct FileSummary {
  std::string name;  ///< Within its folder.
  std::uint64_t bytes = 0;
  std::string hash;  ///< XXH3-128 of the content, hexadecimal.
  friend bool operator==(const FileSummary&, const FileSummary&) = default;
};

struct TensorToWrite {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes;  ///< Row-major, little endian; as many as the shape says.
};

/// Writes the tensors to `path` and forces them to disk. The file appears under its name only when
/// it is whole: on an error nothing is left. kOutOfResources when the disk (or a quota) is short,
/// with the file and the bytes it needs; kInvalidArgument for a name given twice or a wrong size.
Result<FileSummary> write_safetensors(const std::filesystem::path& path,
                                      std::span<const TensorToWrite> tensors,
                                      const std::map<std::string, std::string>& metadata = {});

struct TensorInfo {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;  ///< First byte, from the start of the file.
  std::uint64_t bytes = 0;
};

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  ///< In order of their bytes; they fill the file exactly.
  std::map<std::string, std::string> metadata;
};

/// Checks and reads the header of a file's content. kCorrupt: "`name`: tensor X: what is wrong".
Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> content,
                                            std::string_view name);

/// A file that has been checked; tensors are views into its mapping.
class SafetensorsFile {
 public:
  /// kNotFound, kIo or kCorrupt.
  static Result<SafetensorsFile> open(const std::filesystem::path& path);
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;
  ~SafetensorsFile();

  const std::vector<TensorInfo>& tensors() const;
  const std::map<std::string, std::string>& metadata() const;
  /// Null when there is none of that name.
  const TensorInfo* find(std::string_view name) const;
  std::span<const std::byte> bytes(const TensorInfo& tensor) const;
  std::uint64_t file_bytes() const;
  /// XXH3-128 of the content: reads the whole file.
  std::string hash() const;

 private:
  struct State;
  explicit SafetensorsFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace holmes::model
