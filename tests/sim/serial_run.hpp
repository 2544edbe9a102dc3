#pragma once

// What a simulated job must come to, bit for bit: the same job in one thread.

#include <gtest/gtest.h>

#include "sim/sim_world.hpp"
#include "support/serial_trainer.hpp"

namespace holmes::actors::testing {

struct Serial {
  std::vector<double> losses;
  double validation = 0;
  std::vector<float> weights;
};

inline Serial serial_run(const JobConfig& config) {
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

/// Of the published checkpoint of `step` updates; empty when there is none.
inline std::vector<float> weights(SimWorld& world, Step step) {
  std::vector<float> all;
  if (const auto* model = world.store().checkpoint(step))
    for (const auto& [number, layer] : *model)
      all.insert(all.end(), layer.parameters.begin(), layer.parameters.end());
  return all;
}

/// The job ends well, with each step committed once and in order, and with the losses, validation
/// and weights of a run to which nothing happened; agents that are left end well and give back
/// their memory.
inline void expect_undisturbed(SimWorld& world, const JobConfig& config, const Serial& expected) {
  const auto outcome = world.run(std::chrono::minutes(10));
  ASSERT_TRUE(outcome) << outcome.error().message();
  for (const auto& incident : world.events_of<Incident>())
    EXPECT_TRUE(incident.goes_on) << to_string(incident);
  ASSERT_EQ(*outcome, Outcome::kFinished);
  std::vector<double> losses;
  for (const auto& step : world.events_of<StepFinished>()) {
    EXPECT_EQ(step.step.value(), losses.size()) << "steps are committed once, in order";
    losses.push_back(step.loss);
  }
  EXPECT_EQ(losses, expected.losses);
  ASSERT_FALSE(world.events_of<ValidationFinished>().empty());
  EXPECT_EQ(world.events_of<ValidationFinished>().back().loss, expected.validation);
  EXPECT_EQ(weights(world, Step(config.train.steps)), expected.weights);
  for (const auto& [host, end] : world.ends()) {
    EXPECT_FALSE(end.failed) << end.reason;
    EXPECT_EQ(world.memory(host).buffers_lent, 0U) << "host " << host.value();
  }
}

}  // namespace holmes::actors::testing
