// Goal: votes of a step fold to the same bits in whatever order they come, and votes of other steps
// do not mix. Method: all permutations of a few votes whose sum depends on the order of addition.
#include "vote_box.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <gtest/gtest.h>

namespace holmes::actors {
namespace {

Vote vote(std::uint64_t step, std::vector<ChunkSquares> squares,
          std::vector<MicroBatchLoss> losses) {
  return {Generation(1), Step(step), DeviceId(0), std::move(squares), std::move(losses)};
}

TEST(VoteBox, IsCompleteWithTheLastVoteOnly) {
  VoteBox box(3);
  EXPECT_FALSE(box.add(vote(4, {{0, 0, {1}}}, {})));
  EXPECT_FALSE(box.add(vote(4, {{1, 0, {2}}}, {})));
  const auto merged = box.add(vote(4, {{2, 0, {3}}}, {}));
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->step, Step(4));
  EXPECT_EQ(merged->squares.size(), 3U);
}

TEST(VoteBox, KeepsStepsApartAndBeginsAnew) {
  VoteBox box(2);
  EXPECT_FALSE(box.add(vote(1, {}, {})));
  EXPECT_FALSE(box.add(vote(2, {}, {})));
  EXPECT_EQ(box.add(vote(2, {}, {}))->step, Step(2));
  EXPECT_EQ(box.add(vote(1, {}, {}))->step, Step(1));
  EXPECT_FALSE(box.add(vote(1, {}, {})));
}

TEST(VoteBox, ASingleVoterIsCompleteAtOnce) {
  VoteBox box(1);
  EXPECT_TRUE(box.add(vote(0, {}, {})));
}

TEST(VoteBox, FoldsTheSameBitsInEveryOrderOfVotes) {
  // Doubles whose sum depends on the order in which they are added.
  const std::array<Vote, 4> votes{
      vote(0, {{0, 0, {1e16, 1.0}}}, {{MicroBatch(1), 3e7F}}),
      vote(0, {{0, 2, {1.0}}, {1, 0, {3.0}}}, {{MicroBatch(0), 1e-3F}}),
      vote(0, {{1, 1, {0.1, 1e15}}}, {{MicroBatch(3), 0.7F}}),
      vote(0, {{2, 0, {7.0}}}, {{MicroBatch(2), 1e-9F}}),
  };
  const double norm = std::sqrt(1e16 + 1.0 + 1.0 + 3.0 + 0.1 + 1e15 + 7.0);
  const double loss = (static_cast<double>(1e-3F) + static_cast<double>(3e7F) +
                       static_cast<double>(1e-9F) + static_cast<double>(0.7F)) /
                      4;
  std::array<std::size_t, 4> order{0, 1, 2, 3};
  do {
    VoteBox box(4);
    std::optional<Vote> merged;
    for (const auto i : order) merged = box.add(votes[i]);
    ASSERT_TRUE(merged);
    EXPECT_EQ(fold_norm(*merged), norm);
    EXPECT_EQ(fold_loss(*merged), loss);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(VoteBox, NothingToFoldIsZero) {
  EXPECT_EQ(fold_norm(vote(0, {}, {})), 0);
  EXPECT_EQ(fold_loss(vote(0, {}, {})), 0);
}

}  // namespace
}  // namespace holmes::actors
