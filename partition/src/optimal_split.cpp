#include "optimal_split.hpp"

#include <algorithm>
#include <limits>

#include "text.hpp"

namespace holmes::partition {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr double kWeightAndGradientBytes = 8;
constexpr double kMomentsBytes = 8;
constexpr double kPassesFlops = 3;  ///< Forward and backward, in forwards.

constexpr const char* kAdvice =
    "; raise parallel.pipeline or parallel.tensor, lower train.micro_batch, or use devices with "
    "more memory";

double leaf_count(const Share& share) {
  return 1.0 * (share.leaves.last - share.leaves.first + 1);
}

double micro_batches_of_leaf(const Plan& plan) {
  return 1.0 * plan.job.micro_batch_count() / plan.job.reduction_leaves;
}

/// Most micro-batches of any replica of any stage.
double most_micro_batches(const Plan& plan) {
  double most = 0;
  for (const StagePlan& stage : plan.stages) {
    for (const Share& share : stage.shares) most = std::max(most, leaf_count(share));
  }
  return most * micro_batches_of_leaf(plan);
}

}  // namespace

MemoryFloor::MemoryFloor(const DeviceTable& devices, const ModelCost& model, const Plan& plan) {
  const std::size_t count = plan.stages.size();
  for (std::size_t i = 0; i < count; ++i) {
    const StagePlan& stage = plan.stages[i];
    BalanceStage limits;
    double leaves = 0;
    for (const Share& share : stage.shares) {
      leaves = std::max(leaves, leaf_count(share));
      for (const DeviceId device : share.devices()) {
        limits.memory_bytes =
            std::min(limits.memory_bytes, devices[device.index()]->memory_gib * kGib);
      }
    }
    const double each =
        (kWeightAndGradientBytes + kMomentsBytes / static_cast<double>(stage.shares.size())) /
        plan.tensor;
    limits.in_flight =
        std::min(static_cast<double>(count - i), leaves * micro_batches_of_leaf(plan));
    if (i == 0) limits.fixed_bytes += each * static_cast<double>(model.embedding_parameters);
    if (i + 1 == count) limits.fixed_bytes += each * static_cast<double>(model.head_parameters);
    stages_.push_back(limits);
    layers_.push_back(
        {0, each * static_cast<double>(model.block_parameters),
         1.0 * static_cast<double>(model.edge_bytes) * plan.job.micro_batch / plan.tensor});
  }
}

Status MemoryFloor::check(const Plan& plan) const {
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const StagePlan& stage = plan.stages[i];
    const double blocks = 1.0 * (stage.last_block - stage.first_block + 1);
    const double needs =
        stages_[i].fixed_bytes +
        blocks * (layers_[i].bytes + stages_[i].in_flight * layers_[i].activation_bytes);
    const double over = needs - stages_[i].memory_bytes;
    if (over <= 0) continue;
    return Error(ErrorCode::kInvalidArgument,
                 "stage " + std::to_string(i) + " with " +
                     counted(static_cast<std::size_t>(blocks), "layer") + " needs at least " +
                     number(needs / kGib) + " GiB on each device, which has " +
                     number(stages_[i].memory_bytes / kGib) + " GiB: " + number(over / kGib) +
                     " GiB too much; set parallel.split = \"optimal\", which fits");
  }
  return {};
}

Result<Balance> optimal_split(const ModelCost& model, const Plan& plan,
                              const std::vector<double>& speeds, const MemoryFloor& floor) {
  const double most = most_micro_batches(plan);
  const double flops = kPassesFlops * plan.job.micro_batch;
  std::vector<BalanceStage> stages;
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    BalanceStage stage = floor.stage(i);
    // Seen from a replica with the most micro-batches: stages of more replicas take fewer each.
    stage.speed = speeds[i] * 1e12 * most / plan.job.micro_batch_count();
    if (i == 0) stage.fixed_work += flops * model.embedding_flops;
    if (i + 1 == plan.stages.size()) stage.fixed_work += flops * model.head_flops;
    stage.bytes_scale = floor.layer(i).bytes;
    stages.push_back(stage);
  }
  const std::vector<BalanceLayer> layers(
      model.blocks, {flops * model.block_flops, 1, floor.layer(0).activation_bytes});
  auto best = balance(layers, stages, most - 1);
  if (best) return best;
  return Error(ErrorCode::kInvalidArgument, best.error().message() + kAdvice);
}

}  // namespace holmes::partition
