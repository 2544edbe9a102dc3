#pragma once

// A file mapped into memory, read-only. The mapping lives as long as the object. Whoever cuts the
// file short meanwhile makes reads fatal: where that is to be expected, watch() it.

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

  /// What changes when somebody writes to the file.
  struct Stamp {
    std::uint64_t bytes = 0;
    std::int64_t modified_ns = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  /// From now on stamp() can be asked, which takes a descriptor of `path`; the file there must be
  /// the one that is mapped.
  Status watch(const std::filesystem::path& path);
  Stamp stamp() const;

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
  int watched_ = -1;
};

}  // namespace holmes::model
