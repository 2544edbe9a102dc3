#include "holmes/base/log.hpp"

namespace holmes {

std::string_view to_string(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "unknown";
}

Logger Logger::named(std::string component) const {
  Logger other = *this;
  other.component_ = std::move(component);
  return other;
}

void MemoryLogSink::write(LogLevel level, std::string_view component, std::string_view message) {
  const std::lock_guard lock(mutex_);
  lines_.push_back({level, std::string(component), std::string(message)});
}

std::vector<MemoryLogSink::Line> MemoryLogSink::lines() const {
  const std::lock_guard lock(mutex_);
  return lines_;
}

}  // namespace holmes
