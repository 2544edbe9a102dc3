// Goal: one seed gives one sequence, within its bounds and without gross bias.
#include "holmes/base/random.hpp"

#include <array>

#include <gtest/gtest.h>

namespace holmes {
namespace {

TEST(Random, RepeatsForASeed) {
  Random a(7);
  Random b(7);
  Random c(8);
  int differ = 0;
  for (int i = 0; i < 100; ++i) {
    const auto x = a();
    EXPECT_EQ(x, b());
    differ += x != c() ? 1 : 0;
  }
  EXPECT_GT(differ, 95);
}

TEST(Random, StaysInBoundsAndSpreads) {
  Random random(1);
  std::array<int, 6> seen{};
  for (int i = 0; i < 6000; ++i) ++seen[random.below(6)];
  for (const int count : seen) {
    EXPECT_GT(count, 800);
    EXPECT_LT(count, 1200);
  }
  for (int i = 0; i < 1000; ++i) {
    const double u = random.uniform();
    EXPECT_GE(u, 0.0);
    EXPECT_LT(u, 1.0);
  }
}

}  // namespace
}  // namespace holmes
