// Goal: votes of a step fold to the same bits in whatever order they come, and votes of other steps
// do not mix. Method: all permutations of a few votes whose sum depends on the order of addition.
#include "vote_box.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <gtest/gtest.h>

namespace holmes::actors {
namespace {

Vote vote(std::uint64_t step, std::vector<ChunkSquares> squares, std::vector<MicroBatchLoss> losses,
          std::uint32_t from = 0) {
  return {Generation(1), Step(step),         DeviceId(from),
          DeviceId(0),   std::move(squares), std::move(losses)};
}

VoteBox box_of(std::uint32_t voters) {
  std::vector<DeviceId> devices;
  for (std::uint32_t device = 0; device < voters; ++device) devices.emplace_back(device);
  return VoteBox(devices);
}

TEST(VoteBox, IsCompleteWithTheLastVoteOnly) {
  VoteBox box = box_of(3);
  EXPECT_FALSE(*box.add(vote(4, {{0, 0, {1}}}, {}, 1)));
  EXPECT_FALSE(*box.add(vote(4, {{1, 0, {2}}}, {}, 0)));
  const auto merged = *box.add(vote(4, {{2, 0, {3}}}, {}, 2));
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->step, Step(4));
  EXPECT_EQ(merged->squares.size(), 3U);
}

TEST(VoteBox, KeepsStepsApartAndBeginsAnew) {
  VoteBox box = box_of(2);
  EXPECT_FALSE(*box.add(vote(1, {}, {}, 0)));
  EXPECT_FALSE(*box.add(vote(2, {}, {}, 0)));
  EXPECT_EQ((*box.add(vote(2, {}, {}, 1)))->step, Step(2));
  EXPECT_EQ((*box.add(vote(1, {}, {}, 1)))->step, Step(1));
  EXPECT_FALSE(*box.add(vote(1, {}, {}, 1)));
}

TEST(VoteBox, ASingleVoterIsCompleteAtOnce) {
  VoteBox box = box_of(1);
  EXPECT_TRUE(*box.add(vote(0, {}, {})));
}

TEST(VoteBox, CountsEachVoterOnceAndNobodyElse) {
  VoteBox box = box_of(2);
  EXPECT_FALSE(*box.add(vote(0, {{0, 0, {1}}}, {}, 1)));
  const auto again = box.add(vote(0, {{0, 0, {1}}}, {}, 1));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(again.error().message(), "device 1 voted twice in step 0");
  const auto stranger = box.add(vote(0, {}, {}, 2));
  ASSERT_FALSE(stranger);
  EXPECT_EQ(stranger.error().message(), "device 2 has no vote here in step 0");
  const auto merged = *box.add(vote(0, {}, {}, 0));
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->squares.size(), 1U);
}

TEST(VoteBox, FoldsTheSameBitsInEveryOrderOfVotes) {
  // Doubles whose sum depends on the order in which they are added.
  const std::array<Vote, 4> votes{
      vote(0, {{0, 0, {1e16, 1.0}}}, {{MicroBatch(1), 3e7F}}),
      vote(0, {{0, 2, {1.0}}, {1, 0, {3.0}}}, {{MicroBatch(0), 1e-3F}}, 1),
      vote(0, {{1, 1, {0.1, 1e15}}}, {{MicroBatch(3), 0.7F}}, 2),
      vote(0, {{2, 0, {7.0}}}, {{MicroBatch(2), 1e-9F}}, 3),
  };
  const double norm = std::sqrt(1e16 + 1.0 + 1.0 + 3.0 + 0.1 + 1e15 + 7.0);
  const double loss = (static_cast<double>(1e-3F) + static_cast<double>(3e7F) +
                       static_cast<double>(1e-9F) + static_cast<double>(0.7F)) /
                      4;
  std::array<std::size_t, 4> order{0, 1, 2, 3};
  do {
    VoteBox box = box_of(4);
    std::optional<Vote> merged;
    for (const auto i : order) merged = *box.add(votes[i]);
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
