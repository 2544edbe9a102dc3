#pragma once

// What `holmes` exits with, whatever the command.

#include "holmes/base/error.hpp"

namespace holmes::launcher {

constexpr int kExitDone = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;        ///< Bad usage or configuration: nothing was started.
constexpr int kExitInterrupted = 3;  ///< Stopped on request; the state is saved.

/// For an error before anything has started.
constexpr int exit_code(ErrorCode code) {
  return code == ErrorCode::kInvalidArgument || code == ErrorCode::kNotFound ||
                 code == ErrorCode::kCorrupt
             ? kExitUsage
             : kExitFailed;
}

}  // namespace holmes::launcher
