// Goal: the whole job runs deterministically in virtual time, gives the same bits as a serial run
// whatever the layout and the seed, and stops cleanly when a host dies at any moment.
// Method: SimWorld with a tiny model, 20 seeds, each twice.
#include "sim/sim_world.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "sim/serial_run.hpp"
#include "sim/sim_job.hpp"

namespace holmes::actors {
namespace {

using testing::kLimit;

class SimWorldTest : public testing::SimJobTest {
 protected:
  void expect_equals_serial(SimWorld& world, const JobConfig& config,
                            const testing::Serial& expected) {
    const auto outcome = world.run(kLimit);
    ASSERT_TRUE(outcome) << outcome.error().message();
    for (const auto& incident : world.events_of<Incident>()) ADD_FAILURE() << to_string(incident);
    EXPECT_EQ(*outcome, Outcome::kFinished);
    std::vector<double> losses;
    for (const auto& step : world.events_of<StepFinished>()) losses.push_back(step.loss);
    EXPECT_EQ(losses, expected.losses);
    ASSERT_FALSE(world.events_of<ValidationFinished>().empty());
    EXPECT_EQ(world.events_of<ValidationFinished>().back().loss, expected.validation);
    EXPECT_EQ(testing::weights(world, Step(config.train.steps)), expected.weights);
    for (const auto& [host, end] : world.ends()) EXPECT_FALSE(end.failed) << end.reason;
  }
};

TEST_F(SimWorldTest, EveryLayoutHasTheBitsOfASerialRun) {
  for (const auto& [clusters, hosts] :
       {std::pair{1U, 1U}, {2U, 1U}, {1U, 2U}, {4U, 1U}, {1U, 4U}}) {
    const auto config = job(clusters, hosts);
    SimWorld world({config, 1, Step(0), nullptr});
    expect_equals_serial(world, config, testing::serial_run(config));
  }
}

TEST_F(SimWorldTest, EveryLayoutOfLlamaHasTheBitsOfASerialRun) {
  for (const auto head : {model::Head::kUntied, model::Head::kTied})
    for (const auto& [clusters, hosts] : {std::pair{1U, 1U}, {2U, 2U}, {4U, 1U}, {1U, 4U}}) {
      const auto config = llama_job(clusters, hosts, head);
      SimWorld world({config, 1, Step(0), nullptr});
      expect_equals_serial(world, config, testing::serial_run(config));
      const auto plan = plan_of(config);
      ASSERT_TRUE(plan);
      const bool has_tied_group =
          std::any_of(plan->groups.begin(), plan->groups.end(),
                      [](const auto& g) { return g.kind == partition::GroupKind::kTied; });
      EXPECT_EQ(has_tied_group, head == model::Head::kTied && clusters > 1);
    }
}

TEST_F(SimWorldTest, ALlamaGoesOnFromACheckpointAtAnotherLayout) {
  for (const auto head : {model::Head::kUntied, model::Head::kTied}) {
    const auto expected = testing::serial_run(llama_job(1, 1, head));
    MemoryStore store;
    auto half = llama_job(2, 2, head);
    half.run.checkpoint_every = 2;
    SimWorld first({half, 1, Step(0), &store});
    ASSERT_TRUE(first.run(kLimit));
    ASSERT_NE(store.checkpoint(Step(2)), nullptr);
    for (const auto& [clusters, hosts] : {std::pair{1U, 1U}, {4U, 1U}, {1U, 4U}}) {
      SimWorld world({llama_job(clusters, hosts, head), 7, Step(2), &store});
      ASSERT_TRUE(world.run(kLimit));
      EXPECT_EQ(testing::weights(world, Step(4)), expected.weights);
    }
  }
}

TEST_F(SimWorldTest, TwentySeedsTwiceGiveOneTraceEachAndTheSameBits) {
  const auto config = job(2, 2);
  const auto expected = testing::serial_run(config);
  std::set<std::uint64_t> traces;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SimWorld first({config, seed, Step(0), nullptr});
    expect_equals_serial(first, config, expected);
    SimWorld second({config, seed, Step(0), nullptr});
    expect_equals_serial(second, config, expected);
    EXPECT_EQ(first.trace_hash(), second.trace_hash()) << "seed " << seed;
    traces.insert(first.trace_hash());
    if (HasFailure()) FAIL() << "first failing seed: " << seed;
  }
  EXPECT_GT(traces.size(), 10U) << "seeds hardly change the order of anything";
}

TEST_F(SimWorldTest, EachPassOfAStepIsComputedOnce) {
  const auto config = job(2, 2);
  SimWorld world({config, 3, Step(0), nullptr});
  ASSERT_TRUE(world.run(kLimit));
  std::map<std::tuple<Step, StageIndex, MicroBatch, PassKind>, int> count;
  for (const auto& record : world.passes())
    ++count[{record.step, record.stage, record.pass.micro_batch, record.pass.kind}];
  for (std::uint64_t step = 0; step < config.train.steps; ++step)
    for (std::uint32_t stage = 0; stage < 2; ++stage)
      for (std::uint32_t micro_batch = 0; micro_batch < 8; ++micro_batch)
        for (const auto kind : {PassKind::kForward, PassKind::kBackward})
          EXPECT_EQ((count[{Step(step), StageIndex(stage), MicroBatch(micro_batch), kind}]), 1)
              << "step " << step << " stage " << stage << " micro-batch " << micro_batch;
}

TEST_F(SimWorldTest, GoesOnFromACheckpointAtAnotherLayout) {
  auto whole = job(1, 1);
  const auto expected = testing::serial_run(whole);
  MemoryStore store;
  auto half = job(2, 2);
  half.run.checkpoint_every = 2;
  {
    SimWorld world({half, 1, Step(0), &store});
    ASSERT_TRUE(world.run(kLimit));
    ASSERT_NE(store.checkpoint(Step(2)), nullptr);
  }
  for (const auto& [clusters, hosts] : {std::pair{1U, 1U}, {2U, 2U}, {4U, 1U}, {1U, 4U}}) {
    SimWorld world({job(clusters, hosts), 7, Step(2), &store});
    ASSERT_TRUE(world.run(kLimit));
    std::vector<double> losses;
    for (const auto& step : world.events_of<StepFinished>()) losses.push_back(step.loss);
    EXPECT_EQ(losses, std::vector<double>(expected.losses.begin() + 2, expected.losses.end()));
    EXPECT_EQ(testing::weights(world, Step(4)), expected.weights);
  }
}

TEST_F(SimWorldTest, StopsAfterTheRunningStepWithACheckpointAndGoesOnFromIt) {
  const auto config = job(2, 2);
  const auto expected = testing::serial_run(config);
  MemoryStore store;
  SimWorld world({config, 1, Step(0), &store});
  ASSERT_TRUE(world.run_until([&] { return !world.events_of<StepFinished>().empty(); }, kLimit));
  world.request_stop();
  const auto outcome = world.run(kLimit);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(*outcome, Outcome::kInterrupted);
  const auto saved = world.events_of<CheckpointSaved>();
  ASSERT_EQ(saved.size(), 1U);
  ASSERT_LT(saved[0].step, Step(config.train.steps));
  SimWorld rest({config, 2, saved[0].step, &store});
  ASSERT_TRUE(rest.run(kLimit));
  EXPECT_EQ(testing::weights(rest, Step(config.train.steps)), expected.weights);
}

TEST_F(SimWorldTest, ALostHostEndsTheJobAndIsNamedWhereThatIsWanted) {
  auto config = job(2, 2);
  config.resilience.on_loss = OnLoss::kStop;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SimWorld world({config, seed, Step(0), nullptr});
    const HostId victim(static_cast<std::uint32_t>(seed % 4));
    const auto passes = seed * 4;  // kills fall all over the run
    ASSERT_TRUE(world.run_until([&] { return world.passes().size() >= passes; }, kLimit));
    const bool silent = seed % 3 == 0;
    const auto killed_at = world.now();
    world.kill(victim, silent);
    const auto outcome = world.run(kLimit);
    ASSERT_TRUE(outcome) << "seed " << seed << ": " << outcome.error().message();
    const auto incidents = world.events_of<Incident>();
    if (*outcome == Outcome::kFinished) continue;  // it was killed after the last message it owed
    ASSERT_EQ(incidents.size(), 1U) << "seed " << seed;
    EXPECT_EQ(incidents[0].host, config.cluster.hosts[victim.index()].name) << "seed " << seed;
    EXPECT_LE(world.now() - killed_at, std::chrono::seconds(silent ? 8 : 5)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace holmes::actors
