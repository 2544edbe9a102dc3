// Goal: training executes generated orders unchanged over a slow link, with the bits of any other
// schedule, no more activations than it may hold, sooner than with 1F1B, and goes on with orders
// for the hosts that are left when one dies. Method: SimWorld with 5 ms between two clusters; the
// passes that it saw beside the words of the plan, the weights beside those of a serial run.
#include <gtest/gtest.h>

#include "holmes/partition/schedule.hpp"
#include "sim/serial_run.hpp"
#include "sim/sim_job.hpp"

namespace holmes::actors {
namespace {

using testing::kLimit;

class ScheduleTest : public testing::SimJobTest {
 protected:
  static constexpr std::uint32_t kHeldMax = 5;

  JobConfig slow_job(std::uint32_t hosts, partition::ScheduleKind schedule) const {
    auto config = job(2, hosts);
    config.cluster.fabrics[0].latency_us = 5000;
    for (auto& host : config.cluster.hosts) host.nics[1].latency_us = 5000;
    config.parallel.schedule = schedule;
    config.parallel.order.in_flight_max = kHeldMax;
    return config;
  }

  static void expect_serial(SimWorld& world, const JobConfig& config) {
    const auto expected = testing::serial_run(config);
    const auto outcome = world.run(kLimit);
    ASSERT_TRUE(outcome) << outcome.error().message();
    EXPECT_EQ(*outcome, Outcome::kFinished);
    std::vector<double> losses;
    for (const auto& step : world.events_of<StepFinished>()) losses.push_back(step.loss);
    EXPECT_EQ(losses, expected.losses);
    EXPECT_EQ(testing::weights(world, Step(config.train.steps)), expected.weights);
  }

  /// Training passes of a stage in one step, a letter each.
  static std::string seen(const SimWorld& world, StageIndex stage, Step step) {
    std::string word;
    for (const auto& record : world.passes()) {
      if (record.stage != stage || record.step != step) continue;
      if (record.pass.kind == PassKind::kForward) word += 'F';
      if (record.pass.kind == PassKind::kBackward) word += 'B';
    }
    return word;
  }
};

TEST_F(ScheduleTest, TrainingExecutesTheOrderOfThePlan) {
  const auto config = slow_job(1, partition::ScheduleKind::kNetworkAware);
  const auto plan = plan_of(config);
  ASSERT_TRUE(plan) << plan.error().message();
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SimWorld world({config, seed, Step(0), nullptr});
    expect_serial(world, config);
    for (std::uint32_t s = 0; s < 2; ++s) {
      const auto& share = plan->stages[s].shares[0];
      EXPECT_LE(in_flight_max(*plan, StageIndex(s), share.device), kHeldMax);
      for (std::uint64_t step = 0; step < config.train.steps; ++step)
        EXPECT_EQ(seen(world, StageIndex(s), Step(step)), share.order);
    }
  }
  auto usual = *plan;
  usual.schedule = partition::ScheduleKind::k1F1B;
  EXPECT_NE(order_of(usual, StageIndex(0), usual.stages[0].shares[0].device),
            plan->stages[0].shares[0].order)
      << "1F1B waits for the link with every micro-batch";
}

TEST_F(ScheduleTest, EndsSoonerThan1F1B) {
  SimWorld aware({slow_job(1, partition::ScheduleKind::kNetworkAware), 1, Step(0), nullptr});
  SimWorld usual({slow_job(1, partition::ScheduleKind::k1F1B), 1, Step(0), nullptr});
  ASSERT_TRUE(aware.run(kLimit));
  ASSERT_TRUE(usual.run(kLimit));
  EXPECT_LT(aware.passes().back().at, usual.passes().back().at);
}

TEST_F(ScheduleTest, GoesOnWithOrdersForTheHostsThatAreLeft) {
  const auto config = slow_job(2, partition::ScheduleKind::kNetworkAware);
  for (std::uint32_t victim = 0; victim < 4; ++victim) {
    SimWorld world({config, victim + 1, Step(0), nullptr});
    world.run_until([&] { return world.passes().size() >= 40; }, kLimit);
    world.kill(HostId(victim), false);
    expect_serial(world, config);
  }
}

}  // namespace
}  // namespace holmes::actors
