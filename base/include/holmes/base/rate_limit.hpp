#pragma once

// Keeps what strangers can cause at will (refused connections, say) from filling a log.

#include <cstdint>
#include <optional>

#include "holmes/base/clock.hpp"

namespace holmes {

/// Lets `count_max` events through in each window of time, and counts the others. One thread.
class RateLimit {
 public:
  RateLimit(std::uint32_t count_max, Duration window) : count_max_(count_max), window_(window) {}

  /// Whether an event at `now` goes through; if so, how many were held back since the last that
  /// did.
  std::optional<std::uint64_t> admit(TimePoint now);

 private:
  const std::uint32_t count_max_;
  const Duration window_;
  std::optional<TimePoint> begin_;  // of the running window
  std::uint32_t count_ = 0;         // let through in it
  std::uint64_t held_back_ = 0;
};

}  // namespace holmes
