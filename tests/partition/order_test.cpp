// Goal: generated orders are executable, keep what may be held, are never slower than the published
// schedules at any depth, and within 3 % of the best there is where that can be found. Method:
// random pipelines played pass by pass; branch and bound on small ones; two clusters at 1, 10 and
// 50 ms and 1 to 25 Gb/s in the simulator.
#include "holmes/partition/order.hpp"

#include <gtest/gtest.h>

#include "cost/stage_memory.hpp"
#include "holmes/base/random.hpp"
#include "holmes/partition/schedule.hpp"
#include "holmes/partition/simulate.hpp"
#include "schedule/exact.hpp"
#include "schedule/generate.hpp"
#include "support/slow_link.hpp"

namespace holmes::partition {
namespace {

/// One replica for each stage, a channel for each direction of each edge.
Pipeline random_chain(Random& random, std::uint32_t stages, std::uint32_t micro_batches) {
  Pipeline pipeline;
  pipeline.stages = stages;
  pipeline.micro_batches = micro_batches;
  pipeline.ways.assign(1, {});
  const std::size_t places = std::size_t{stages} * micro_batches;
  pipeline.forth.assign(places, 0);
  pipeline.back.assign(places, 0);
  for (std::uint32_t s = 0; s < stages; ++s) {
    const double forward_s = 0.5 + random.uniform();
    const auto held = static_cast<std::uint32_t>(1 + random.below(micro_batches));
    pipeline.stations.push_back(
        {s, {{forward_s, 2 * forward_s, forward_s, forward_s}}, 0, micro_batches, held});
    pipeline.owner.insert(pipeline.owner.end(), micro_batches, s);
    if (s == 0) continue;
    const double busy_s = random.uniform();
    const double latency_s = random.chance(0.5) ? 3 * random.uniform() : 0;
    for (const bool forth : {true, false}) {
      const std::uint32_t way = static_cast<std::uint32_t>(pipeline.ways.size());
      pipeline.ways.push_back({{{pipeline.channel_count++, busy_s}}, latency_s});
      auto& ways = forth ? pipeline.forth : pipeline.back;
      const std::size_t from = std::size_t{forth ? s - 1 : s} * micro_batches;
      std::fill_n(ways.begin() + static_cast<std::ptrdiff_t>(from), micro_batches, way);
    }
  }
  return pipeline;
}

TEST(Exact, FindsWhatIsKnown) {
  // One stage: nothing to wait for. Two stages of 1 s forward and 2 s backward without delay, two
  // micro-batches: 1F1B ends after (2 + 1) x 3 s.
  Random random(1);
  bool complete = false;
  Pipeline one = random_chain(random, 1, 3);
  one.stations[0].chunks[0] = {1, 2, 1, 1};
  const auto alone = exact(one, false, kNever, 100000, &complete);
  ASSERT_TRUE(alone && complete);
  EXPECT_DOUBLE_EQ(alone->end_s, 9);
  Pipeline two = random_chain(random, 2, 2);
  for (auto& station : two.stations) {
    station.chunks[0] = {1, 2, 1, 1};
    station.held_max = 2;
  }
  for (auto& way : two.ways) way = {};
  const auto both = exact(two, false, kNever, 100000, &complete);
  ASSERT_TRUE(both && complete);
  EXPECT_DOUBLE_EQ(both->end_s, 9);
  // Split, the second stage's input parts come first: F F W at its end, and no bubble of 2 s.
  const auto split = exact(two, true, kNever, 100000, &complete);
  ASSERT_TRUE(split && complete);
  EXPECT_DOUBLE_EQ(split->end_s, 7);
  EXPECT_DOUBLE_EQ(PipelineRun(two).play(split->orders), 7);
}

TEST(Exact, IsNeverLaterThanAnyWord) {
  Random random(2);
  for (int round = 0; round < 20; ++round) {
    const Pipeline pipeline = random_chain(random, 2, 2);
    PipelineRun run(pipeline);
    bool complete = false;
    const auto best = exact(pipeline, false, kNever, 1'000'000, &complete);
    ASSERT_TRUE(best && complete);
    EXPECT_NEAR(run.play(best->orders), best->end_s, 1e-9);
    double soonest_s = kNever;
    for (const char* first : {"FFBB", "FBFB"}) {
      for (const char* second : {"FFBB", "FBFB"}) {
        soonest_s = std::min(soonest_s, run.play({first, second}));
      }
    }
    EXPECT_NEAR(best->end_s, soonest_s, 1e-9) << "round " << round;
  }
}

TEST(Generate, WithinThreePercentOfTheBest) {
  Random random(3);
  int proven = 0;
  for (int round = 0; round < 120; ++round) {
    const bool split = round % 2 == 1;
    const auto stages = static_cast<std::uint32_t>(2 + random.below(2));
    const auto micro_batches = static_cast<std::uint32_t>(2 + random.below(split ? 2 : 4));
    const Pipeline pipeline = random_chain(random, stages, micro_batches);
    const auto found = generate(pipeline, {split, 40'000});
    ASSERT_FALSE(found.empty());
    bool complete = false;
    const auto best = exact(pipeline, split, found.front().end_s, 100'000, &complete);
    if (!complete) continue;
    ++proven;
    const double best_s = best ? best->end_s : found.front().end_s;
    EXPECT_LE(found.front().end_s, 1.03 * best_s) << "round " << round;
  }
  EXPECT_GE(proven, 100);
}

/// 1, 10 and 50 ms, 1 to 25 Gb/s between two clusters; as much memory as 1F1B, twice that, and
/// enough for GPipe.
void expect_never_slower(std::uint32_t stages, bool whole) {
  for (const double latency_ms : {1, 10, 50}) {
    for (const double gbit_s : {1.0, 2.5, 5.0, 10.0, 25.0}) {
      const testing::SlowLink link{latency_ms, gbit_s, stages, 16};
      for (const std::uint32_t held : {stages, 2 * stages, 16U}) {
        Plan plan = testing::slow_link_plan(link);
        const OrderOptions options{held, !whole, whole ? 1U : 2U};
        ASSERT_TRUE(order_passes(testing::slow_link_cluster(link), testing::slow_link_model(link),
                                 {}, options, plan));
        ASSERT_TRUE(check_schedule(plan));
        EXPECT_EQ(executed_by_runtime(plan) || !whole, true);
        for (std::uint32_t s = 0; s < stages; ++s) {
          EXPECT_LE(in_flight_max(plan, StageIndex(s), plan.stages[s].shares[0].device),
                    held * plan.chunks);
        }
        const double generated_s = testing::step_s(link, plan);
        for (const auto& other : testing::published(link, held, whole)) {
          EXPECT_LE(generated_s, testing::step_s(link, other.plan) * (1 + 1e-9))
              << other.name << " at " << latency_ms << " ms, " << gbit_s << " Gb/s, " << held
              << " in flight";
        }
      }
    }
  }
}

TEST(OrderPasses, KeepWithinTheMemoryOfTheDevices) {
  const testing::SlowLink link{50, 1, 4, 16};
  ModelCost model = testing::slow_link_model(link);
  model.block_stash_bytes = 100'000'000;
  Cluster cluster = testing::slow_link_cluster(link);
  Plan plan = testing::slow_link_plan(link);
  ASSERT_TRUE(order_passes(cluster, model, {}, {}, plan));
  const StageIndex first(0);
  EXPECT_GT(in_flight_max(plan, first, plan.stages[0].shares[0].device), 6U);
  const CostOptions cost;
  const MemoryUse six = StageMemory(plan, model, first, cost, {}).of(plan.stages[0].shares[0], 6.5);
  for (Host& host : cluster.hosts) host.devices[0].memory_gib = six.total() / (1 << 30);
  ASSERT_TRUE(order_passes(cluster, model, {}, {}, plan));
  for (std::uint32_t s = 0; s < 4; ++s) {
    EXPECT_LE(in_flight_max(plan, StageIndex(s), plan.stages[s].shares[0].device), 6U);
  }
  EXPECT_EQ(in_flight_max(plan, first, plan.stages[0].shares[0].device), 6U);
  EXPECT_TRUE(check_memory(plan, cluster, model, {}));
}

TEST(OrderPasses, ExplainNamesTheOrderAndHowFarItIsAhead) {
  const testing::SlowLink link{50, 1, 2, 4};
  Plan plan = testing::slow_link_plan(link);
  plan.schedule = ScheduleKind::kNetworkAware;
  plan.stages[0].shares[0].order = "FFFBFBBB";
  plan.stages[1].shares[0].order = "FBFBFBFB";
  const std::string text = explain(plan, testing::slow_link_cluster(link));
  EXPECT_NE(text.find("stage 0: FFFBFBBB, micro-batches in flight at most: 3 (1f1b: 2)"),
            std::string::npos)
      << text;
}

TEST(OrderPasses, NeverSlowerThanPublishedSchedulesOfTwoStages) {
  expect_never_slower(2, false);
  expect_never_slower(2, true);
}

TEST(OrderPasses, NeverSlowerThanPublishedSchedulesOfFourStages) {
  expect_never_slower(4, false);
  expect_never_slower(4, true);
}

}  // namespace
}  // namespace holmes::partition
