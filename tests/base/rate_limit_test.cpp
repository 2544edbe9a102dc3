// Goal: a flood of events lets a few of each window through, and none is lost from the count.
#include "holmes/base/rate_limit.hpp"

#include <gtest/gtest.h>

namespace holmes {
namespace {

TEST(RateLimit, LetsAFewThroughInEachWindowAndCountsTheOthers) {
  RateLimit limit(2, std::chrono::seconds(1));
  const TimePoint begin = TimePoint() + std::chrono::hours(1);
  const auto after = [&](int milliseconds) {
    return limit.admit(begin + std::chrono::milliseconds(milliseconds));
  };
  EXPECT_EQ(after(0), 0U);
  EXPECT_EQ(after(1), 0U);
  EXPECT_EQ(after(2), std::nullopt);
  EXPECT_EQ(after(999), std::nullopt);
  EXPECT_EQ(after(1000), 2U);
  EXPECT_EQ(after(1001), 0U);
  EXPECT_EQ(after(1500), std::nullopt);
  EXPECT_EQ(after(9000), 1U);
}

}  // namespace
}  // namespace holmes
