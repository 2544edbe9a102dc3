#pragma once

// The clock seam: the only source of time. Monotonic, per process; never compared across hosts.

#include "holmes/base/units.hpp"

namespace holmes {

struct MonotonicTime;  // a clock tag: time points of this program cannot mix with others
using TimePoint = std::chrono::time_point<MonotonicTime, Duration>;

class Clock {
 public:
  virtual ~Clock() = default;
  /// May be called from any thread.
  virtual TimePoint now() const = 0;
};

/// The machine's CLOCK_MONOTONIC.
class SteadyClock final : public Clock {
 public:
  TimePoint now() const override;
};

}  // namespace holmes
