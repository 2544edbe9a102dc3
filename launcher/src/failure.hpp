#pragma once

// How a command that cannot do its work says so.

#include "console.hpp"
#include "holmes/base/error.hpp"

namespace holmes::launcher {

/// {"event": "error", "code": ..., "message": ...}: what --json prints instead of results.
std::string error_json(std::string_view code, std::string_view message);

/// One line on stderr and, with `json`, one object on stdout; returns the exit code.
int report_failure(const Error& error, Console& console, bool json = false);

}  // namespace holmes::launcher
