#include "log_sink.hpp"

#include <array>

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <nlohmann/json.hpp>

#include "printable.hpp"

namespace holmes::launcher {
namespace {

constexpr std::array kLevels{LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning,
                             LogLevel::kError};

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

/// Hands formatted lines to the console, which has the lock.
class ConsoleSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit ConsoleSink(Console& console) : console_(console) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    console_.log({line.data(), line.size()});
  }
  void flush_() override {}

  Console& console_;
};

std::string quoted(std::string_view text) {
  // Log lines may quote bytes of a peer: what is no UTF-8 is replaced, never thrown upon.
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class SpdlogSink final : public LogSink {
 public:
  SpdlogSink(Console& console, const LogOptions& options)
      : json_(options.json), logger_("holmes", std::make_shared<ConsoleSink>(console)) {
    logger_.set_level(to_spdlog(options.level));
    logger_.set_pattern(json_ ? R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z",%v})"
                              : "%Y-%m-%d %H:%M:%S.%e %v");
  }

  void write(LogLevel level, std::string_view component, std::string_view message) override {
    if (!logger_.should_log(to_spdlog(level))) return;
    logger_.log(to_spdlog(level),
                json_ ? as_json(level, component, message) : as_text(level, component, message));
  }

 private:
  static std::string as_text(LogLevel level, std::string_view component, std::string_view message) {
    std::string name(to_string(level));
    name.resize(8, ' ');
    return name + printable(component) + ": " + printable(message);
  }

  static std::string as_json(LogLevel level, std::string_view component, std::string_view message) {
    return R"("level":)" + quoted(to_string(level)) + R"(,"component":)" + quoted(component) +
           R"(,"message":)" + quoted(message);
  }

  const bool json_;
  spdlog::logger logger_;
};

}  // namespace

std::optional<LogLevel> parse_log_level(std::string_view name) {
  for (const LogLevel level : kLevels)
    if (to_string(level) == name) return level;
  return std::nullopt;
}

std::unique_ptr<LogSink> make_log_sink(Console& console, const LogOptions& options) {
  return std::make_unique<SpdlogSink>(console, options);
}

}  // namespace holmes::launcher
