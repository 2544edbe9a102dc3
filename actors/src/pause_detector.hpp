#pragma once

// A process that was itself stopped for a while (a debugger, a terminal) has heard nobody: the
// silence of others then proves nothing. A watcher ticks regularly and asks at each tick.

#include "holmes/base/clock.hpp"

namespace holmes::actors {

class PauseDetector {
 public:
  /// `silence_max`: after which the watcher gives somebody up.
  PauseDetector(Duration period, Duration silence_max, TimePoint now)
      : late_(period + silence_max / 2), last_(now) {}

  /// Whether this tick comes so late that the process must have been stopped.
  bool tick(TimePoint now) {
    const bool was_paused = now - last_ > late_;
    last_ = now;
    return was_paused;
  }

 private:
  Duration late_;
  TimePoint last_;
};

}  // namespace holmes::actors
