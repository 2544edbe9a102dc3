#pragma once

// A mapped file that a job trains on, which tells when its content is not what it was any more.
// Any thread may ask at any time.

#include <atomic>
#include <cstdint>
#include <string>

#include "data/mapped_file.hpp"

namespace holmes::model {

class WatchedFile {
 public:
  /// `file` is watched; `kind` and `name` are for messages: "text file", and its path.
  WatchedFile(MappedFile file, std::string kind, std::string name);

  std::span<const std::byte> bytes() const { return file_.bytes(); }
  /// Of the content when it was opened.
  const std::string& hash() const { return hash_; }
  const std::string& name() const { return name_; }
  /// kInvalidArgument when the bytes that were mapped are others now. What was touched, or added
  /// to, is read once more.
  Status unchanged() const;

 private:
  MappedFile file_;
  std::string kind_;
  std::string name_;
  // When the file was last found to be as it was.
  mutable std::atomic<std::int64_t> modified_ns_;
  std::string hash_;
};

}  // namespace holmes::model
