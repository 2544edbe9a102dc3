// Goal: the whole job runs deterministically in virtual time, gives the same bits as a serial run
// whatever the layout and the seed, and stops cleanly when a host dies at any moment.
// Method: SimWorld with a tiny model, 20 seeds, each twice.
#include "sim/sim_world.hpp"

#include <set>

#include <gtest/gtest.h>

#include "sim/sim_job.hpp"
#include "support/serial_trainer.hpp"

namespace holmes::actors {
namespace {

using testing::kLimit;

class SimWorldTest : public testing::SimJobTest {
 protected:
  struct Serial {
    std::vector<double> losses;
    double validation = 0;
    std::vector<float> weights;
  };
  Serial serial(const JobConfig& config) const {
    const auto file = *model::open_byte_text(config.data.text);
    const auto engine = model::make_reference_engine();
    holmes::testing::SerialJob job;
    job.model = config.model;
    job.batch = config.train.shape.batch;
    job.micro_batch = config.train.shape.micro_batch;
    job.sequence = config.train.sequence;
    job.reduction_leaves = config.train.shape.reduction_leaves;
    job.seed = config.train.seed;
    job.validation = config.data.validation;
    job.optimizer = config.train.optimizer;
    job.learning_rate = config.train.learning_rate;
    job.clip_norm = config.train.clip_norm;
    holmes::testing::SerialTrainer trainer(job, *file, *engine);
    Serial result;
    for (std::uint64_t step = 0; step < config.train.steps; ++step)
      result.losses.push_back(trainer.step().loss);
    result.validation = trainer.validate(config.data.validation_batches);
    result.weights = trainer.weights();
    return result;
  }

  static std::vector<float> weights(SimWorld& world, Step step) {
    std::vector<float> all;
    if (const auto* model = world.store().checkpoint(step))
      for (const auto& [number, layer] : *model)
        all.insert(all.end(), layer.parameters.begin(), layer.parameters.end());
    return all;
  }

  void expect_equals_serial(SimWorld& world, const JobConfig& config, const Serial& expected) {
    const auto outcome = world.run(kLimit);
    ASSERT_TRUE(outcome) << outcome.error().message();
    for (const auto& incident : world.events_of<Incident>()) ADD_FAILURE() << to_string(incident);
    EXPECT_EQ(*outcome, Outcome::kFinished);
    std::vector<double> losses;
    for (const auto& step : world.events_of<StepFinished>()) losses.push_back(step.loss);
    EXPECT_EQ(losses, expected.losses);
    ASSERT_FALSE(world.events_of<ValidationFinished>().empty());
    EXPECT_EQ(world.events_of<ValidationFinished>().back().loss, expected.validation);
    EXPECT_EQ(weights(world, Step(config.train.steps)), expected.weights);
    for (const auto& [host, end] : world.ends()) EXPECT_FALSE(end.failed) << end.reason;
  }
};

TEST_F(SimWorldTest, EveryLayoutHasTheBitsOfASerialRun) {
  for (const auto& [clusters, hosts] :
       {std::pair{1U, 1U}, {2U, 1U}, {1U, 2U}, {4U, 1U}, {1U, 4U}}) {
    const auto config = job(clusters, hosts);
    SimWorld world({config, 1, Step(0), nullptr});
    expect_equals_serial(world, config, serial(config));
  }
}

TEST_F(SimWorldTest, TwentySeedsTwiceGiveOneTraceEachAndTheSameBits) {
  const auto config = job(2, 2);
  const auto expected = serial(config);
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
  const auto expected = serial(whole);
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
    EXPECT_EQ(weights(world, Step(4)), expected.weights);
  }
}

TEST_F(SimWorldTest, StopsAfterTheRunningStepWithACheckpointAndGoesOnFromIt) {
  const auto config = job(2, 2);
  const auto expected = serial(config);
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
  EXPECT_EQ(weights(rest, Step(config.train.steps)), expected.weights);
}

TEST_F(SimWorldTest, ALostHostEndsTheJobAndIsNamed) {
  const auto config = job(2, 2);
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
