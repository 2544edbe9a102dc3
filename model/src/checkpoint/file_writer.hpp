#pragma once

// Writes one file that appears under its name only when it is whole and on disk.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "data/content_hash.hpp"
#include "holmes/base/result.hpp"
#include "holmes/model/safetensors.hpp"

namespace holmes::model {

class FileWriter {
 public:
  /// A file of `bytes` bytes, for which room is reserved at once: kOutOfResources when there is
  /// none, with the file and the bytes it needs.
  static Result<FileWriter> create(const std::filesystem::path& path, std::uint64_t bytes);
  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&&) = delete;
  /// Without finish() nothing is left.
  ~FileWriter();

  Status write(std::span<const std::byte> bytes);
  /// Forces the content to disk and gives the file its name. All bytes must have been written.
  Result<FileSummary> finish();

 private:
  FileWriter(std::filesystem::path path, std::uint64_t bytes);
  Error failure(std::string_view action, int why) const;

  std::filesystem::path path_;
  std::filesystem::path unfinished_;
  std::uint64_t bytes_;
  std::uint64_t written_ = 0;
  int descriptor_ = -1;
  std::unique_ptr<ContentHash> hash_;
};

/// Writes `text` as a whole file.
Result<FileSummary> write_file(const std::filesystem::path& path, std::string_view text);

/// Forces a folder's list of names to disk.
Status sync_folder(const std::filesystem::path& folder);

}  // namespace holmes::model
