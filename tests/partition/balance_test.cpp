// Goal: the dynamic program finds the best split there is, and says what is short when none fits.
// Method: every split of small random cases is tried by hand and compared; a few cases by sight.
#include "holmes/partition/balance.hpp"

#include <algorithm>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holmes/base/random.hpp"

namespace holmes::partition {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kGib = 1024.0 * 1024 * 1024;

struct Case {
  std::vector<BalanceLayer> layers;
  std::vector<BalanceStage> stages;
  double steady = 0;
};

/// The time of a step under `counts`, nothing where memory is short.
std::optional<double> step_s(const Case& c, const std::vector<std::uint32_t>& counts) {
  double slowest = 0;
  double sum = 0;
  std::size_t layer = 0;
  for (std::size_t s = 0; s < counts.size(); ++s) {
    const BalanceStage& stage = c.stages[s];
    double work = stage.fixed_work;
    double bytes = stage.fixed_bytes;
    for (std::uint32_t i = 0; i < counts[s]; ++i, ++layer) {
      work += c.layers[layer].work;
      bytes += stage.bytes_scale * c.layers[layer].bytes +
               stage.in_flight * c.layers[layer].activation_bytes;
    }
    if (bytes > stage.memory_bytes) return std::nullopt;
    const double seconds = work / stage.speed + stage.fixed_s;
    slowest = std::max(slowest, seconds);
    sum += seconds;
  }
  return c.steady * slowest + sum;
}

void try_all(const Case& c, std::vector<std::uint32_t>& counts, std::uint32_t left,
             std::optional<double>& best) {
  const std::size_t open = c.stages.size() - counts.size();
  if (open == 0) {
    const auto seconds = left == 0 ? step_s(c, counts) : std::nullopt;
    if (seconds && (!best || *seconds < *best)) best = seconds;
    return;
  }
  for (std::uint32_t count = 1; count + open <= left + 1; ++count) {
    counts.push_back(count);
    try_all(c, counts, left - count, best);
    counts.pop_back();
  }
}

Case random_case(Random& random) {
  Case c;
  const auto layers = 1 + random.below(9);
  const auto stages = 1 + random.below(std::min<std::uint64_t>(layers, 5));
  // Whole numbers, so that sums are exact in any order.
  for (std::uint64_t i = 0; i < layers; ++i) {
    c.layers.push_back({1.0 * static_cast<double>(random.below(8)),
                        static_cast<double>(random.below(4)),
                        static_cast<double>(random.below(3))});
  }
  for (std::uint64_t i = 0; i < stages; ++i) {
    BalanceStage stage;
    stage.speed = static_cast<double>(std::uint64_t{1} << random.below(3));
    stage.fixed_work = static_cast<double>(random.below(6));
    stage.fixed_s = static_cast<double>(random.below(2));
    stage.fixed_bytes = static_cast<double>(random.below(3));
    stage.bytes_scale = static_cast<double>(1 + random.below(2));
    stage.in_flight = static_cast<double>(stages - i);
    if (random.chance(0.7)) stage.memory_bytes = static_cast<double>(4 + random.below(30));
    c.stages.push_back(stage);
  }
  c.steady = static_cast<double>(random.below(12));
  return c;
}

TEST(Balance, IsTheBestOfAllSplits) {
  int feasible = 0;
  int short_of_memory = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    Random random(seed);
    const Case c = random_case(random);
    std::optional<double> best;
    std::vector<std::uint32_t> counts;
    try_all(c, counts, static_cast<std::uint32_t>(c.layers.size()), best);
    const auto found = balance(c.layers, c.stages, c.steady);
    ASSERT_EQ(best.has_value(), found.has_value()) << "seed " << seed;
    if (!best) {
      ++short_of_memory;
      EXPECT_EQ(found.error().code(), ErrorCode::kOutOfResources);
      continue;
    }
    ++feasible;
    EXPECT_EQ(step_s(c, found->counts), best) << "seed " << seed;
    EXPECT_EQ(c.steady * found->slowest_s + found->sum_s, *best) << "seed " << seed;
  }
  EXPECT_GT(feasible, 1000);
  EXPECT_GT(short_of_memory, 100);
}

TEST(Balance, EqualLayersAndStagesAreDealtEqually) {
  const std::vector<BalanceLayer> layers(48, {1, 0, 0});
  const std::vector<BalanceStage> stages(4);
  EXPECT_THAT(balance(layers, stages, 31)->counts, ElementsAre(12, 12, 12, 12));
}

TEST(Balance, EmbeddingAndHeadCountAsWork) {
  const std::vector<BalanceLayer> layers(30, {1, 0, 0});
  std::vector<BalanceStage> stages(2);
  stages[1].fixed_work = 4;  // the head
  EXPECT_THAT(balance(layers, stages, 31)->counts, ElementsAre(17, 13));
}

TEST(Balance, MemoryMovesLayersToTheSlowStage) {
  const std::vector<BalanceLayer> layers(10, {1, 1, 0});
  std::vector<BalanceStage> stages(2);
  stages[0].speed = 9;
  stages[0].memory_bytes = 6;
  EXPECT_THAT(balance(layers, stages, 7)->counts, ElementsAre(6, 4));
}

TEST(Balance, SaysWhichStageIsShortAndByHowMuch) {
  const std::vector<BalanceLayer> layers(4, {1, kGib, 0});
  std::vector<BalanceStage> stages(2);
  for (BalanceStage& stage : stages) stage.memory_bytes = 1.5 * kGib;
  const auto found = balance(layers, stages, 7);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message(),
              HasSubstr("with 2 layers needs 2 GiB of 1.5 GiB, 0.5 GiB too much"));
}

TEST(Balance, HundredsOfLayersOnManyStages) {
  Random random(7);
  std::vector<BalanceLayer> layers;
  for (int i = 0; i < 1000; ++i) layers.push_back({0.5 + random.uniform(), 1, 1});
  std::vector<BalanceStage> stages(64);
  for (BalanceStage& stage : stages) stage.speed = 0.5 + random.uniform();
  const auto found = balance(layers, stages, 255);
  ASSERT_TRUE(found);
  std::uint32_t sum = 0;
  for (const std::uint32_t count : found->counts) sum += count;
  EXPECT_EQ(sum, 1000U);
  // Better than the layers in proportion to speed can be: no stage is over 1 layer above the mean.
  double speed = 0;
  for (const BalanceStage& stage : stages) speed += stage.speed;
  double work = 0;
  for (const BalanceLayer& layer : layers) work += layer.work;
  EXPECT_LT(found->slowest_s, work / speed + 1.5 / 0.5);
}

}  // namespace
}  // namespace holmes::partition
