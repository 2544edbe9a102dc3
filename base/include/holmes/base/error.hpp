#pragma once

// Operating errors (peer gone, bad configuration, out of buffers) are values of this type.
// A message says what failed, where (host, NIC, file:line, key), why, and what to do about it.

#include <source_location>
#include <string>
#include <string_view>

namespace holmes {

/// One code for each different reaction of a caller, not for each cause; the message has the cause.
enum class ErrorCode {
  kInvalidArgument,  ///< Bad usage or configuration: tell the user, exit code 2.
  kNotFound,         ///< The named thing does not exist.
  kUnavailable,      ///< Not now or not here; another path or a later try may do.
  kRefused,          ///< The peer speaks another protocol, version or job: do not try again.
  kClosed,           ///< The connection or object is gone; build a new one.
  kTimeout,          ///< A deadline passed.
  kCorrupt,          ///< Bytes are not what they claim to be: drop their source.
  kSuperseded,       ///< The operation belongs to an older generation.
  kOutOfResources,   ///< Memory, disk, buffers or descriptors are short.
  kInterrupted,      ///< The user asked to stop.
  kIo,               ///< The operating system refused a read, write or system call.
  kInternal,         ///< An exception or state nobody foresaw.
};

/// The code's name in lower case, for logs and JSON, for example "out_of_resources".
std::string_view to_string(ErrorCode code);

class [[nodiscard]] Error {
 public:
  Error(ErrorCode code, std::string message,
        std::source_location where = std::source_location::current())
      : code_(code), message_(std::move(message)), where_(where) {}

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  /// The place in the source that made the error, for debug logs; users need the message only.
  const std::source_location& where() const { return where_; }

  /// The same error with "prefix: " before its message.
  Error in(std::string_view prefix) const;

  friend bool operator==(const Error& a, const Error& b) {
    return a.code_ == b.code_ && a.message_ == b.message_;
  }

 private:
  ErrorCode code_;
  std::string message_;
  std::source_location where_;
};

/// kIo with `what`, the text of `errno_value` and its number; ENOSPC and ENOMEM: kOutOfResources.
Error system_error(std::string_view what, int errno_value,
                   std::source_location where = std::source_location::current());

}  // namespace holmes
