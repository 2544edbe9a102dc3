#pragma once

// A file mapped into memory, read-only. The mapping lives as long as the object; the file must not
// be cut short meanwhile (checkpoints and token files are never changed in place).

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "holmes/base/result.hpp"

namespace holmes::model {

class MappedFile {
 public:
  /// `what` names the file's role in errors, e.g. "text file". kNotFound when there is none,
  /// kInvalidArgument for a folder or another thing that is no file, kIo otherwise.
  static Result<MappedFile> open(const std::filesystem::path& path, std::string_view what);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace holmes::model
