#pragma once

// Trains a whole model in one thread through the public interfaces of model/, in exactly the order
// of sums that a distributed run must keep: the oracle that Stage and Replica actors are compared
// with, bit for bit. It is written to be read, not to be fast.
//
// The contract of one step (M = batch / micro_batch micro-batches, R leaves):
//  1. Leaf i has micro-batches [i*M/R, (i+1)*M/R). Its gradients start at zero; each micro-batch,
//     in ascending order, runs forward through all layers, then backward with
//     loss_scale = 1.0F / M, adding to the gradients of its leaf.
//  2. Node n of the tree is the sum of its children, add(left, right): left[i] += right[i]. The
//  root
//     is the step's gradient. The embedding's copy of the tied matrix goes through this like any
//     other tensor.
//  3. add(head, copy) for the tied matrix: once, after both have been summed.
//  4. The norm is the root of the squares, summed in double: sum_of_squares() of each chunk, over
//     layers in order and chunks in order, without those of tied copies.
//  5. clip_factor(norm, clip_norm) scales the gradients inside adamw(), chunk by chunk; the rate is
//     learning_rate(schedule, step). Then the copy takes the head's values.
// The loss of a step is the mean over its micro-batches' losses, summed in double in their order.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "holmes/base/ids.hpp"
#include "holmes/model/checkpoint.hpp"
#include "holmes/model/data.hpp"
#include "holmes/model/gpt.hpp"
#include "holmes/model/optimizer.hpp"
#include "model/whole_model.hpp"

namespace holmes::testing {

/// The values of a job that decide its bits.
struct SerialJob {
  model::GptConfig model;
  std::uint32_t batch = 8;
  std::uint32_t micro_batch = 1;
  std::uint32_t sequence = 16;
  std::uint32_t reduction_leaves = 1;
  std::uint64_t seed = 1;
  double validation = 0.1;
  model::AdamW optimizer;
  model::LearningRate learning_rate;
  float clip_norm = 1.0F;
};

struct SerialStep {
  double loss = 0;
  double gradient_norm = 0;  ///< Before clipping.
  double learning_rate = 0;
};

class SerialTrainer {
 public:
  /// Starts at step 0 with initial values. File and engine must outlive it.
  SerialTrainer(const SerialJob& job, const model::TokenFile& file, model::Engine& engine);

  /// The next step to run, which is the number of updates done.
  Step next_step() const { return next_; }
  /// Runs it.
  SerialStep step();
  /// Mean loss over `micro_batches` of the validation order, summed in double in their order.
  double validate(std::uint32_t micro_batches);

  /// All layers with parameters and moments: embedding, blocks, head. `gradients` are those of the
  /// last step, unscaled, the tied ones merged into the head's.
  std::vector<model::OwnedLayer>& layers() { return model_.layers(); }
  /// The parameters of all layers as one list of numbers, for comparison.
  std::vector<float> weights();

  model::JobConstants constants() const;
  /// Saves under `root` as one stage with one owner.
  Result<std::filesystem::path> save(const std::filesystem::path& root, std::uint32_t keep = 3);
  /// Goes on from a checkpoint of the same job, written at whatever layout.
  Status load(const model::Checkpoint& checkpoint);

 private:
  using Gradients = std::vector<std::vector<float>>;

  float forward(Step step, MicroBatch micro_batch);
  Gradients sum_leaf(std::uint32_t leaf, std::vector<double>& losses);
  Gradients sum_node(std::uint32_t node, std::vector<double>& losses);

  SerialJob job_;
  const model::TokenFile& file_;
  model::Split split_;
  model::SampleOrder order_;
  model::WholeModel model_;
  std::vector<std::int32_t> tokens_;
  std::vector<std::int32_t> targets_;
  Step next_;
};

struct SerialRun {
  std::vector<SerialStep> steps;
  std::vector<float> weights;
};
/// Trains `steps` steps from the initial values.
SerialRun serial_train(const SerialJob& job, const model::TokenFile& file, model::Engine& engine,
                       std::uint64_t steps);

}  // namespace holmes::testing
