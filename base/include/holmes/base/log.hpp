#pragma once

// Logging without a library behind it: modules write to a Logger that they were given, the launcher
// decides what a line looks like and where it goes.

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace holmes {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

/// "debug", "info", "warning" or "error".
std::string_view to_string(LogLevel level);

class LogSink {
 public:
  virtual ~LogSink() = default;
  /// From any thread. `component` names the actor or part that speaks, e.g. "nic host-1/ib0".
  virtual void write(LogLevel level, std::string_view component, std::string_view message) = 0;
};

/// A cheap handle that names one component. The sink must outlive it.
class Logger {
 public:
  /// A logger that drops everything.
  Logger() = default;
  Logger(LogSink& sink, std::string component) : sink_(&sink), component_(std::move(component)) {}

  /// A logger for another component of the same sink.
  Logger named(std::string component) const;

  void debug(std::string_view message) const { write(LogLevel::kDebug, message); }
  void info(std::string_view message) const { write(LogLevel::kInfo, message); }
  void warning(std::string_view message) const { write(LogLevel::kWarning, message); }
  void error(std::string_view message) const { write(LogLevel::kError, message); }

 private:
  void write(LogLevel level, std::string_view message) const {
    if (sink_ != nullptr) sink_->write(level, component_, message);
  }

  LogSink* sink_ = nullptr;
  std::string component_;
};

/// Keeps lines in memory: for tests.
class MemoryLogSink final : public LogSink {
 public:
  struct Line {
    LogLevel level;
    std::string component;
    std::string message;
  };
  void write(LogLevel level, std::string_view component, std::string_view message) override;
  std::vector<Line> lines() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Line> lines_;
};

}  // namespace holmes
