#include <algorithm>
#include <array>
#include <cstdio>

#include "holmes/partition/cost.hpp"
#include "holmes/partition/reach.hpp"
#include "holmes/partition/reduction_tree.hpp"
#include "holmes/partition/schedule.hpp"
#include "text.hpp"

namespace holmes::partition {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr double kGradientBytes = 4;
constexpr double kMomentBytes = 8;
constexpr double kMasterBytes = 4;

std::string gib(double bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g GiB", bytes / kGib);
  return text.data();
}

bool has_embedding(StageIndex stage) {
  return stage.index() == 0;
}
bool has_head(const Plan& plan, StageIndex stage) {
  return stage.index() + 1 == plan.stages.size();
}

/// Bytes of activations as they are kept: the model counts elements of 4 bytes.
double kept(std::uint64_t bytes, const CostOptions& options) {
  constexpr double kModelElementBytes = 4;
  return static_cast<double>(bytes) * options.element_bytes / kModelElementBytes;
}

double block_stash(const ModelCost& model, const CostOptions& options) {
  // The input of a block is kept in any case.
  const double input = edge_bytes(model, options);
  switch (options.recompute) {
    case Recompute::kNone:
      return input + kept(model.block_stash_bytes, options);
    case Recompute::kSelective:
      return input + kept(model.block_selective_bytes, options);
    case Recompute::kFull:
      break;
  }
  return input;
}

/// Activations of one micro-batch of the whole stage; each tensor rank keeps its part.
double stage_stash(const Plan& plan, const ModelCost& model, StageIndex stage,
                   const CostOptions& options) {
  const StagePlan& at = plan.stages[stage.index()];
  const double blocks = at.last_block - at.first_block + 1;
  double bytes = blocks * block_stash(model, options);
  if (has_head(plan, stage)) bytes += kept(model.head_stash_bytes, options);
  return bytes * plan.job.micro_batch / plan.tensor;
}

double largest_layer(const Plan& plan, const ModelCost& model, StageIndex stage) {
  std::uint64_t largest = model.block_parameters;
  if (has_embedding(stage)) largest = std::max(largest, model.embedding_parameters);
  if (has_head(plan, stage)) largest = std::max(largest, model.head_parameters);
  return static_cast<double>(largest) / plan.tensor;
}

}  // namespace

double stage_parameters(const Plan& plan, const ModelCost& model, StageIndex stage) {
  const StagePlan& at = plan.stages[stage.index()];
  double parameters =
      1.0 * (at.last_block - at.first_block + 1) * static_cast<double>(model.block_parameters);
  if (has_embedding(stage)) parameters += static_cast<double>(model.embedding_parameters);
  if (has_head(plan, stage)) parameters += static_cast<double>(model.head_parameters);
  return parameters / plan.tensor;
}

MemoryUse memory_use(const Plan& plan, const ModelCost& model, StageIndex stage, const Share& share,
                     const CostOptions& options) {
  const double parameters = stage_parameters(plan, model, stage);
  const auto replicas = static_cast<double>(plan.stages[stage.index()].shares.size());
  const bool half = options.element_bytes < 4;
  const double state = kMomentBytes + (half ? kMasterBytes : 0);
  const double shards = options.optimizer == OptimizerKind::kReplicated ? 1 : replicas;
  MemoryUse use;
  use.weights = parameters * options.element_bytes;
  const double buffers =
      options.exact ? buffers_needed(plan.job.reduction_leaves, share.leaves) : 1;
  use.gradients = parameters * kGradientBytes * buffers;
  use.optimizer = parameters * state / shards;

  const auto passes = schedule(plan, stage, share.device);
  const double in_flight = in_flight_max(passes) / (1.0 * plan.chunks);
  use.activations = in_flight * stage_stash(plan, model, stage, options);
  // One block at a time is computed again, and then holds everything.
  if (options.recompute != Recompute::kNone) {
    use.activations += kept(model.block_stash_bytes, options) * plan.job.micro_batch / plan.tensor;
  }
  const double edge = edge_bytes(model, options) * plan.job.micro_batch / plan.tensor;
  const double edges = (has_embedding(stage) ? 0 : 1) + (has_head(plan, stage) ? 0 : 1);
  // Payloads that the schedule can have under way, and one more (DETAILS.md G16); the reduced shard
  // and two buckets on their way.
  use.buffers = edges * (in_flight + 1) * edge + parameters * kGradientBytes / shards +
                2 * largest_layer(plan, model, stage) * kGradientBytes;
  use.reserved = options.reserved_gib * kGib;
  return use;
}

MemoryShort tightest(const Plan& plan, const Cluster& cluster, const ModelCost& model,
                     const CostOptions& options) {
  const auto devices = devices_by_rank(cluster);
  MemoryShort worst;
  bool any = false;
  for (std::uint32_t s = 0; s < plan.stages.size(); ++s) {
    const Share* last = nullptr;
    MemoryUse use;
    for (const Share& share : plan.stages[s].shares) {
      // Neighbours with as many leaves need as much: clusters of thousands of equal devices.
      const bool same = last != nullptr && last->leaves.last - last->leaves.first ==
                                               share.leaves.last - share.leaves.first;
      const bool same_tree = same && options.exact &&
                             buffers_needed(plan.job.reduction_leaves, last->leaves) ==
                                 buffers_needed(plan.job.reduction_leaves, share.leaves);
      if (!same || (options.exact && !same_tree)) {
        use = memory_use(plan, model, StageIndex(s), share, options);
      }
      last = &share;
      for (const DeviceId device : share.devices()) {
        const double memory = devices[device.index()]->memory_gib * kGib;
        const MemoryShort here{StageIndex(s), device, use, memory};
        if (!any || here.missing() > worst.missing()) worst = here;
        any = true;
      }
    }
  }
  return worst;
}

Status check_memory(const Plan& plan, const Cluster& cluster, const ModelCost& model,
                    const CostOptions& options) {
  if (plan.empty()) return {};
  const MemoryShort worst = tightest(plan, cluster, model, options);
  if (worst.missing() <= 0) return {};
  const Host& host = cluster.hosts[cluster.host_of(worst.device).index()];
  const MemoryUse& use = worst.use;
  return Error(ErrorCode::kInvalidArgument,
               "memory is short: device " + std::to_string(worst.device.value()) + " (" +
                   host.name + "), which has stage " + std::to_string(worst.stage.value()) +
                   ", needs " + gib(use.total()) + " and has " + gib(worst.memory) + ": " +
                   gib(worst.missing()) + " too little (weights " + gib(use.weights) +
                   ", gradients " + gib(use.gradients) + ", optimizer " + gib(use.optimizer) +
                   ", activations " + gib(use.activations) + ", buffers " + gib(use.buffers) + ")");
}

}  // namespace holmes::partition
