#include "holmes/partition/plan.hpp"

#include <algorithm>
#include <bit>

#include "holmes/base/assert.hpp"
#include "holmes/partition/schedule.hpp"

namespace holmes::partition {
namespace {

constexpr std::uint32_t kDefaultLeavesMax = 8;

const StagePlan& stage_of(const Plan& plan, StageIndex stage) {
  HOLMES_ASSERT(stage.index() < plan.stages.size(), "no such stage");
  return plan.stages[stage.index()];
}

std::uint32_t micro_batches_of_leaf(const Plan& plan) {
  return plan.job.micro_batch_count() / plan.job.reduction_leaves;
}

}  // namespace

std::uint32_t default_reduction_leaves(const JobShape& job) {
  HOLMES_ASSERT(job.micro_batch > 0 && job.batch >= job.micro_batch, "a step has micro-batches");
  const std::uint32_t count = job.micro_batch_count();
  return std::min(kDefaultLeavesMax, std::uint32_t{1} << std::countr_zero(count));
}

std::uint32_t Plan::leaf_of(MicroBatch micro_batch) const {
  HOLMES_ASSERT(micro_batch.value() < job.micro_batch_count(), "no such micro-batch");
  return micro_batch.value() / micro_batches_of_leaf(*this);
}

DeviceId Plan::owner(StageIndex stage, MicroBatch micro_batch) const {
  const std::uint32_t leaf = leaf_of(micro_batch);
  const auto& shares = stage_of(*this, stage).shares;
  const auto share = std::partition_point(shares.begin(), shares.end(),
                                          [&](const Share& s) { return s.leaves.last < leaf; });
  HOLMES_ASSERT(share != shares.end() && share->leaves.first <= leaf, "shares cover all leaves");
  return share->device;
}

std::vector<MicroBatch> Plan::micro_batches(StageIndex stage, DeviceId device) const {
  std::vector<MicroBatch> result;
  const std::uint32_t each = micro_batches_of_leaf(*this);
  for (const Share& share : stage_of(*this, stage).shares) {
    if (share.device != device &&
        std::find(share.peers.begin(), share.peers.end(), device) == share.peers.end()) {
      continue;
    }
    const std::uint32_t end = (share.leaves.last + 1) * each;
    for (std::uint32_t i = share.leaves.first * each; i < end; ++i) {
      result.push_back(MicroBatch(i));
    }
  }
  return result;
}

std::vector<DeviceId> Plan::members() const {
  std::vector<DeviceId> result;
  for (const StagePlan& stage : stages) {
    for (const Share& share : stage.shares) {
      result.push_back(share.device);
      result.insert(result.end(), share.peers.begin(), share.peers.end());
    }
  }
  return result;
}

std::vector<DeviceId> Share::devices() const {
  std::vector<DeviceId> result{device};
  result.insert(result.end(), peers.begin(), peers.end());
  return result;
}

Status check_runnable(const Plan& plan) {
  if (!executed_by_runtime(plan)) {
    return Error(ErrorCode::kInvalidArgument,
                 "parallel.schedule = \"" + std::string(to_string(plan.schedule)) +
                     "\" can be planned and simulated, but not trained with yet (chunks and split "
                     "backward passes are not); set parallel.schedule to \"network-aware\", "
                     "\"1f1b\" or \"gpipe\"");
  }
  if (!plan.empty() && !std::has_single_bit(plan.job.reduction_leaves)) {
    return Error(ErrorCode::kInvalidArgument,
                 "train.reduction_leaves = " + std::to_string(plan.job.reduction_leaves) +
                     " can be planned and simulated, but not trained with: gradients are summed "
                     "over a tree of a power of two of leaves; set it to one");
  }
  if (plan.tensor == 1) return {};
  return Error(ErrorCode::kInvalidArgument,
               "parallel.tensor = " + std::to_string(plan.tensor) +
                   " can be planned and simulated, but not trained with yet: each stage's replica "
                   "is one device; set parallel.tensor = 1");
}

}  // namespace holmes::partition
