// Goal: ids are ordered, hashable and do not convert into one another.
#include "holmes/base/ids.hpp"

#include <unordered_set>

#include <gtest/gtest.h>

#include "holmes/base/units.hpp"

namespace holmes {
namespace {

static_assert(!std::is_convertible_v<HostId, NicId>);
static_assert(!std::is_convertible_v<int, HostId>);

TEST(Ids, CompareAndHash) {
  EXPECT_LT(HostId(1), HostId(2));
  EXPECT_EQ(Step(3).index(), 3U);
  EXPECT_EQ(std::unordered_set<HostId>({HostId(1), HostId(1), HostId(2)}).size(), 2U);
}

TEST(Units, TransferTimeIsBitsOverRate) {
  EXPECT_EQ(transfer_time(125'000'000, 1.0), std::chrono::seconds(1));
  EXPECT_DOUBLE_EQ(seconds(from_seconds(0.25)), 0.25);
}

}  // namespace
}  // namespace holmes
