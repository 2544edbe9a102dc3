// Goal: blocks and leaves are dealt as the paper and the design say.
// Method: published splits; properties over random speeds; brute force for leaves.
#include "holmes/partition/split.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include <gtest/gtest.h>

#include "holmes/base/random.hpp"
#include "holmes/partition/reduction_tree.hpp"

namespace holmes::partition {
namespace {

using Counts = std::vector<std::uint32_t>;

Counts by_speed(std::uint32_t blocks, std::vector<double> speeds, double alpha = 1) {
  return split_by_speed(blocks, speeds, alpha);
}

TEST(SplitBySpeed, PublishedSplits) {
  EXPECT_EQ(by_speed(30, {197, 160}), (Counts{16, 14}));
  EXPECT_EQ(by_speed(48, {197, 160}), (Counts{26, 22}));
  EXPECT_EQ(by_speed(30, {160, 197}), (Counts{14, 16}));
  EXPECT_EQ(by_speed(30, {197, 160}, 1.05), (Counts{17, 13}));
}

TEST(SplitBySpeed, EqualSpeedsAreEqual) {
  EXPECT_EQ(by_speed(30, {5, 5}), (Counts{15, 15}));
  EXPECT_EQ(by_speed(7, {5, 5}), (Counts{4, 3}));
  EXPECT_EQ(by_speed(8, {0.1, 0.1, 0.1}), (Counts{3, 3, 2}));
  EXPECT_EQ(by_speed(3, {1}), (Counts{3}));
}

TEST(SplitBySpeed, ManyStages) {
  EXPECT_EQ(by_speed(60, {197, 197, 160, 160}), (Counts{16, 16, 14, 14}));
  EXPECT_EQ(by_speed(8, {3, 2.9, 1}), (Counts{3, 4, 1}));
}

TEST(SplitBySpeed, EveryStageHasABlock) {
  EXPECT_EQ(by_speed(3, {1000, 1, 1}), (Counts{1, 1, 1}));
  EXPECT_EQ(by_speed(10, {1000, 1, 1}), (Counts{8, 1, 1}));
  EXPECT_EQ(by_speed(4, {3, 1}, 100), (Counts{3, 1}));
  EXPECT_EQ(by_speed(4, {3, 1}, 1e-9), (Counts{1, 3}));
  EXPECT_EQ(by_speed(2, {1e-9, 1e9}), (Counts{1, 1}));
}

TEST(SplitBySpeed, CoversAllBlocksAndFollowsSpeed) {
  Random random(3);
  for (int round = 0; round < 5000; ++round) {
    const auto stages = static_cast<std::uint32_t>(1 + random.below(8));
    const auto blocks = static_cast<std::uint32_t>(stages + random.below(60));
    std::vector<double> speeds(stages);
    for (double& speed : speeds) speed = 0.5 + random.uniform();
    const Counts counts = by_speed(blocks, speeds);
    ASSERT_EQ(counts.size(), stages);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0U), blocks);
    EXPECT_GE(*std::min_element(counts.begin(), counts.end()), 1U);
    const double sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
    for (std::uint32_t i = 0; i < stages; ++i) {
      // Speeds differ at most threefold: nobody is further than two blocks from its part, but for
      // the one block that everybody has.
      EXPECT_LE(counts[i], std::max(1.0, speeds[i] / sum * blocks + 2));
    }
  }
}

TEST(SplitEqual, FirstStagesTakeTheRemainder) {
  EXPECT_EQ(split_equal(30, 2), (Counts{15, 15}));
  EXPECT_EQ(split_equal(11, 4), (Counts{3, 3, 3, 2}));
}

std::size_t partials(std::uint32_t leaves, const std::vector<LeafRange>& runs) {
  std::size_t count = 0;
  for (const LeafRange& run : runs) count += maximal_subtrees(leaves, run).size();
  return count;
}

/// Fewest partial sums over all ways to cut into runs of floor or ceil size.
std::size_t fewest_partials(std::uint32_t leaves, std::uint32_t replicas) {
  const std::uint32_t each = leaves / replicas;
  std::size_t best = ~std::size_t{0};
  std::function<void(std::uint32_t, std::uint32_t, std::size_t)> go =
      [&](std::uint32_t replica, std::uint32_t first, std::size_t so_far) {
        if (replica == replicas) {
          if (first == leaves) best = std::min(best, so_far);
          return;
        }
        for (const std::uint32_t size : {each, each + 1}) {
          if (first + size > leaves) continue;
          go(replica + 1, first + size,
             so_far + maximal_subtrees(leaves, {first, first + size - 1}).size());
        }
      };
  go(0, 0, 0);
  return best;
}

TEST(SplitLeaves, CoversOnceEvenlyWithFewestPartials) {
  for (std::uint32_t leaves = 1; leaves <= 16; leaves *= 2) {
    for (std::uint32_t replicas = 1; replicas <= leaves; ++replicas) {
      const auto runs = split_leaves(leaves, replicas);
      ASSERT_EQ(runs.size(), replicas);
      std::uint32_t next = 0;
      for (const LeafRange& run : runs) {
        EXPECT_EQ(run.first, next);
        const std::uint32_t size = run.last - run.first + 1;
        EXPECT_GE(size, leaves / replicas);
        EXPECT_LE(size, (leaves + replicas - 1) / replicas);
        next = run.last + 1;
      }
      EXPECT_EQ(next, leaves);
      EXPECT_EQ(partials(leaves, runs), fewest_partials(leaves, replicas));
    }
  }
}

/// The slowest replica, and with `seconds` equal the fewest partial sums, over all cuts.
void try_cuts(std::uint32_t leaves, const std::vector<double>& speeds, std::vector<LeafRange>& runs,
              std::pair<double, std::size_t>& best) {
  const std::uint32_t first = runs.empty() ? 0 : runs.back().last + 1;
  if (runs.size() == speeds.size()) {
    if (first != leaves) return;
    double slowest = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      slowest = std::max(slowest, (runs[i].last - runs[i].first + 1) / speeds[i]);
    }
    best = std::min(best, std::pair(slowest, partials(leaves, runs)));
    return;
  }
  for (std::uint32_t last = first; last < leaves; ++last) {
    runs.push_back({first, last});
    try_cuts(leaves, speeds, runs, best);
    runs.pop_back();
  }
}

TEST(SplitLeaves, UnequalReplicasGetWholeLeavesBySpeed) {
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    const std::uint32_t leaves = std::uint32_t{1} << (1 + random.below(4));
    const auto replicas = 1 + random.below(std::min<std::uint64_t>(leaves, 4));
    std::vector<double> speeds;
    for (std::uint64_t i = 0; i < replicas; ++i) {
      speeds.push_back(static_cast<double>(std::uint64_t{1} << random.below(3)));
    }
    speeds[0] *= 1.5;  // never all equal, which is the other function's
    if (replicas == 1) continue;
    const auto runs = split_leaves(leaves, speeds);
    std::vector<LeafRange> tried;
    std::pair<double, std::size_t> best(1e9, 0);
    try_cuts(leaves, speeds, tried, best);
    std::uint32_t next = 0;
    double slowest = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      EXPECT_EQ(runs[i].first, next);
      next = runs[i].last + 1;
      slowest = std::max(slowest, (next - runs[i].first) / speeds[i]);
    }
    EXPECT_EQ(next, leaves);
    EXPECT_EQ(slowest, best.first) << "round " << round;
    EXPECT_EQ(partials(leaves, runs), best.second) << "round " << round;
  }
}

TEST(SplitLeaves, EqualSpeedsAreDealtEqually) {
  for (const std::uint32_t replicas : {1U, 3U, 5U, 8U}) {
    EXPECT_EQ(split_leaves(8, std::vector<double>(replicas, 0.7)), split_leaves(8, replicas));
  }
  const std::vector<double> speeds{3, 1};
  EXPECT_EQ(split_leaves(8, speeds), (std::vector<LeafRange>{{0, 5}, {6, 7}}));
}

TEST(SplitLeaves, KnownCases) {
  EXPECT_EQ(split_leaves(8, 2), (std::vector<LeafRange>{{0, 3}, {4, 7}}));
  EXPECT_EQ(split_leaves(8, 3), (std::vector<LeafRange>{{0, 2}, {3, 5}, {6, 7}}));
  EXPECT_EQ(split_leaves(1024, 1024).back(), (LeafRange{1023, 1023}));
}

}  // namespace
}  // namespace holmes::partition
