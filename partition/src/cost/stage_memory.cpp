#include "cost/stage_memory.hpp"

#include <algorithm>
#include <bit>

#include "holmes/partition/reduction_tree.hpp"
#include "holmes/partition/schedule.hpp"

namespace holmes::partition {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr double kGradientBytes = 4;
constexpr double kMomentBytes = 8;
constexpr double kMasterBytes = 4;
constexpr std::uint32_t kLeavesLent = 2;  // gradient buffers that training fills side by side

/// Buffers of a shard that adding partial sums in tree order takes at once.
double fold_buffers(const std::vector<bool>& partial, TreeNode node) {
  if (node >= partial.size() || partial[node]) return 1;
  const TreeNode right = 2 * node + 1;
  const bool waits = right < partial.size() && !partial[right];
  const double with_right = waits ? 1 + fold_buffers(partial, right) : 1;
  return std::max(fold_buffers(partial, 2 * node), with_right);
}

double largest_layer(const ModelCost& model, bool embedding, bool head) {
  std::uint64_t largest = model.block_parameters;
  if (embedding) largest = std::max(largest, model.embedding_parameters);
  if (head) largest = std::max(largest, model.head_parameters);
  return static_cast<double>(largest);
}

}  // namespace

double kept_bytes(std::uint64_t bytes, const CostOptions& options) {
  constexpr double kModelElementBytes = 4;
  return static_cast<double>(bytes) * options.element_bytes / kModelElementBytes;
}

StageMemory::StageMemory(const Plan& plan, const ModelCost& model, StageIndex stage,
                         const CostOptions& options, std::span<const HostId> hosts)
    : plan_(plan),
      model_(model),
      stage_(stage),
      options_(options),
      hosts_(hosts),
      embedding_(stage.index() == 0),
      head_(stage.index() + 1 == plan.stages.size()),
      parameters_(stage_parameters(plan, model, stage)),
      replicas_(static_cast<double>(plan.stages[stage.index()].shares.size())) {
  if (!options.exact) return;
  const std::uint32_t leaves = plan.job.reduction_leaves;
  std::vector<bool> partial(std::size_t{2} * std::bit_ceil(leaves), false);
  for (const Share& share : plan.stages[stage.index()].shares) {
    for (const TreeNode node : maximal_subtrees(leaves, share.leaves)) {
      partial[node] = true;
      ++subtrees_;
      if (!hosts.empty()) ++subtrees_on_[hosts[share.device.index()]];
    }
  }
  fold_buffers_ = replicas_ > 1 ? fold_buffers(partial, 1) : 1;
  if (embedding_) return;
  const StageIndex before(stage.value() - 1);
  for (const Share& share : plan.stages[before.index()].shares) {
    upstream_ += in_flight_max(plan, before, share.device);
  }
}

std::uint32_t StageMemory::subtrees(const Share& share) const {
  return static_cast<std::uint32_t>(
      maximal_subtrees(plan_.job.reduction_leaves, share.leaves).size());
}

double StageMemory::in_flight(const Share& share) const {
  return in_flight_max(schedule(plan_, stage_, share.device)) / (1.0 * plan_.chunks);
}

/// Activations that a micro-batch leaves on the whole stage; each tensor rank keeps its part.
double StageMemory::stash() const {
  const StagePlan& at = plan_.stages[stage_.index()];
  // The input of a block is kept in any case; in `reserved` it is counted among the activations.
  double block = options_.exact ? 0 : edge_bytes(model_, options_);
  if (options_.recompute == Recompute::kNone)
    block += kept_bytes(model_.block_stash_bytes, options_);
  if (options_.recompute == Recompute::kSelective) {
    block += kept_bytes(model_.block_selective_bytes, options_);
  }
  double bytes = (at.last_block - at.first_block + 1) * block;
  if (head_) bytes += kept_bytes(model_.head_stash_bytes, options_);
  // One block at a time is computed again, and then holds everything.
  return bytes * plan_.job.micro_batch / plan_.tensor;
}

double StageMemory::micro_batches(const Share& share) const {
  return 1.0 * (share.leaves.last - share.leaves.first + 1) * plan_.job.micro_batch_count() /
         plan_.job.reduction_leaves;
}

MemoryUse StageMemory::of(const Share& share) const {
  const double flying = in_flight(share);
  if (!options_.exact) return with_constants(published(flying));
  return with_constants(reserved(share, flying, std::min(upstream_, micro_batches(share))));
}

MemoryUse StageMemory::of(const Share& share, double in_flight) const {
  if (!options_.exact) return with_constants(published(in_flight));
  return with_constants(reserved(share, in_flight, micro_batches(share)));
}

MemoryUse StageMemory::with_constants(MemoryUse use) const {
  if (options_.recompute != Recompute::kNone) {
    use.activations +=
        kept_bytes(model_.block_stash_bytes, options_) * plan_.job.micro_batch / plan_.tensor;
  }
  use.reserved = options_.reserved_gib * kGib;
  return use;
}

MemoryUse StageMemory::published(double in_flight) const {
  const bool half = options_.element_bytes < 4;
  const double shards = options_.optimizer == OptimizerKind::kReplicated ? 1 : replicas_;
  MemoryUse use;
  use.weights = parameters_ * options_.element_bytes;
  use.gradients = parameters_ * kGradientBytes;
  use.optimizer = parameters_ * (kMomentBytes + (half ? kMasterBytes : 0)) / shards;
  use.activations = in_flight * stash();
  const double edge = edge_bytes(model_, options_) * plan_.job.micro_batch / plan_.tensor;
  const double edges = (embedding_ ? 0 : 1) + (head_ ? 0 : 1);
  // Payloads that the schedule can have under way, and one more; the reduced shard
  // and two buckets on their way.
  use.buffers = edges * (in_flight + 1) * edge + parameters_ * kGradientBytes / shards +
                2 * largest_layer(model_, embedding_, head_) / plan_.tensor * kGradientBytes;
  return use;
}

MemoryUse StageMemory::reserved(const Share& share, double in_flight, double arrivals) const {
  const bool half = options_.element_bytes < 4;
  const bool alone = replicas_ == 1;
  const double shards = options_.optimizer == OptimizerKind::kReplicated ? 1 : replicas_;
  const double own = subtrees(share);
  const std::uint32_t leaves = share.leaves.last - share.leaves.first + 1;
  const double filled = std::max(buffers_needed(plan_.job.reduction_leaves, share.leaves),
                                 std::min(kLeavesLent, leaves));
  MemoryUse use;
  use.weights = parameters_ * options_.element_bytes;
  // Sums of own subtrees wait for those of others, or lie being sent.
  use.gradients = parameters_ * kGradientBytes * (filled + own + (alone ? 0 : own - 1));
  use.optimizer = parameters_ * (kMomentBytes + (half ? kMasterBytes : 0)) / shards;
  use.activations = in_flight * stash();
  const double edge = edge_bytes(model_, options_) * plan_.job.micro_batch / plan_.tensor;
  use.buffers = edge * activation_count(in_flight, arrivals) + exchange_bytes(share);
  return use;
}

/// Activations between layers and on edges, those that arrive and those that are being sent.
double StageMemory::activation_count(double flying, double arrivals) const {
  const StagePlan& at = plan_.stages[stage_.index()];
  const double layers = at.last_block - at.first_block + 1 + (embedding_ ? 1 : 0) + (head_ ? 1 : 0);
  double count = flying * (layers - 1) + 2;
  if (!head_) count += 2 * flying + 1;
  if (!embedding_) count += arrivals + 1;
  if (!embedding_ || !head_) count += 2 * (flying + 1) + flying + 1;
  return count;
}

double StageMemory::remote_shares(const Share& share, std::size_t stage) const {
  double count = 0;
  for (const Share& other : plan_.stages[stage].shares) {
    if (other.device == share.device) continue;
    if (hosts_.empty() || hosts_[other.device.index()] != hosts_[share.device.index()]) ++count;
  }
  return count;
}

/// The embedding's table is not updated where it is a copy: its values come from the last stage.
double StageMemory::updated() const {
  const double shards = options_.optimizer == OptimizerKind::kReplicated ? 1 : replicas_;
  const double tied = static_cast<double>(model_.tied_parameters()) / plan_.tensor;
  return (parameters_ - (embedding_ ? tied : 0)) / shards;
}

double StageMemory::copy_bytes() const {
  return updated() * (kMasterBytes + kMomentBytes + kGradientBytes);
}

double StageMemory::sent_copy_bytes() const {
  return parameters_ / replicas_ * kGradientBytes;
}

double StageMemory::layer_bytes() const {
  return largest_layer(model_, embedding_, head_) / plan_.tensor * kMasterBytes;
}

/// Of gradients on their way to their owners, and of updated values on their way back.
double StageMemory::exchange_bytes(const Share& share) const {
  const double shards = options_.optimizer == OptimizerKind::kReplicated ? 1 : replicas_;
  const double shard = parameters_ / shards;
  const double tied = static_cast<double>(model_.tied_parameters()) / plan_.tensor;
  double elements = 2 * updated();
  if (replicas_ > 1) {
    const double local =
        hosts_.empty() ? subtrees(share) : subtrees_on_.at(hosts_[share.device.index()]);
    elements += shard * (1 + subtrees_ - local);
    elements += updated() * remote_shares(share, stage_.index());
    const double layer = largest_layer(model_, embedding_, head_) / plan_.tensor;
    elements += (fold_buffers_ - 1) * layer / shards;
  }
  const std::size_t last = plan_.stages.size() - 1;
  const auto fraction = [&](std::size_t stage) {
    return remote_shares(share, stage) / static_cast<double>(plan_.stages[stage].shares.size());
  };
  if (head_) elements += tied / shards * fraction(0);
  if (embedding_ && tied > 0) {
    elements += static_cast<double>(model_.embedding_parameters) / plan_.tensor / shards +
                tied * fraction(last);
  }
  return elements * kGradientBytes;
}

std::vector<std::uint32_t> StageMemory::key(const Share& share) const {
  std::vector<std::uint32_t> key = {share.leaves.last - share.leaves.first + 1};
  if (plan_.schedule == ScheduleKind::kNetworkAware) {
    key.push_back(in_flight_max(plan_, stage_, share.device));
  }
  if (!options_.exact) return key;
  key.push_back(buffers_needed(plan_.job.reduction_leaves, share.leaves));
  key.push_back(subtrees(share));
  if (!hosts_.empty()) key.push_back(hosts_[share.device.index()].value());
  return key;
}

}  // namespace holmes::partition
