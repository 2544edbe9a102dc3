#pragma once

// What a simulated job must come to, bit for bit: the same job in one thread.

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

}  // namespace holmes::actors::testing
