#pragma once

// What a log line looks like and where it goes: spdlog behind base's LogSink, writing to a Console.

#include <memory>
#include <optional>

#include "console.hpp"
#include "holmes/base/log.hpp"

namespace holmes::launcher {

struct LogOptions {
  bool json = false;
  LogLevel level = LogLevel::kInfo;  ///< Lines below it are dropped.
};

/// "debug", "info", "warning" or "error".
std::optional<LogLevel> parse_log_level(std::string_view name);

/// The console must outlive the sink.
std::unique_ptr<LogSink> make_log_sink(Console& console, const LogOptions& options);

}  // namespace holmes::launcher
