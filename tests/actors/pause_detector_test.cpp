// Goal: a watcher that was itself stopped is told from one whose ticks are only as slow as they are
// meant to be.
#include "pause_detector.hpp"

#include <gtest/gtest.h>

namespace holmes::actors {
namespace {

using std::chrono::milliseconds;

TEST(PauseDetector, RegularTicksAreNoPauseHoweverLongThePeriod) {
  for (const int period : {1, 50, 200, 60000})
    for (const int silence_max : {2, 100, 400, 60000}) {
      TimePoint now = TimePoint() + std::chrono::hours(1);
      PauseDetector pauses{milliseconds(period), milliseconds(silence_max), now};
      for (int i = 0; i < 5; ++i) {
        now += milliseconds(period);
        EXPECT_FALSE(pauses.tick(now)) << period << " of " << silence_max;
      }
    }
}

TEST(PauseDetector, ATickThatIsVeryLateIsOnce) {
  TimePoint now = TimePoint() + std::chrono::hours(1);
  PauseDetector pauses{milliseconds(100), milliseconds(1000), now};
  now += milliseconds(601);
  EXPECT_TRUE(pauses.tick(now));
  now += milliseconds(600);
  EXPECT_FALSE(pauses.tick(now));
}

}  // namespace
}  // namespace holmes::actors
