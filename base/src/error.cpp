#include "holmes/base/error.hpp"

#include <cerrno>
#include <system_error>

namespace holmes {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kRefused:
      return "refused";
    case ErrorCode::kClosed:
      return "closed";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kSuperseded:
      return "superseded";
    case ErrorCode::kOutOfResources:
      return "out_of_resources";
    case ErrorCode::kInterrupted:
      return "interrupted";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "unknown";
}

Error Error::in(std::string_view prefix) const {
  return Error(code_, std::string(prefix) + ": " + message_, where_);
}

Error system_error(std::string_view what, int errno_value, std::source_location where) {
  const bool short_of_it = errno_value == ENOSPC || errno_value == EDQUOT ||
                           errno_value == ENOMEM || errno_value == EMFILE || errno_value == ENFILE;
  return Error(short_of_it ? ErrorCode::kOutOfResources : ErrorCode::kIo,
               std::string(what) + ": " + std::generic_category().message(errno_value), where);
}

}  // namespace holmes
