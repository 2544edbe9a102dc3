#include "holmes/base/clock.hpp"

namespace holmes {

TimePoint SteadyClock::now() const {
  return TimePoint(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace holmes
