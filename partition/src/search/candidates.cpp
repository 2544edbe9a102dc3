#include "search/candidates.hpp"

#include <algorithm>
#include <limits>

#include "holmes/partition/balance.hpp"
#include "holmes/partition/split.hpp"

namespace holmes::partition {
namespace {

void every_split(std::uint32_t left, std::size_t stage, std::vector<std::uint32_t>& counts,
                 std::vector<std::vector<std::uint32_t>>& found) {
  if (stage + 1 == counts.size()) {
    counts[stage] = left;
    found.push_back(counts);
    return;
  }
  const auto behind = static_cast<std::uint32_t>(counts.size() - stage - 1);
  for (counts[stage] = 1; counts[stage] + behind <= left; ++counts[stage]) {
    every_split(left - counts[stage], stage + 1, counts, found);
  }
}

double replica_tflops(const Share& share, const std::vector<const Device*>& devices) {
  double slowest = devices[share.device.index()]->tflops;
  for (const DeviceId peer : share.peers) {
    slowest = std::min(slowest, devices[peer.index()]->tflops);
  }
  return slowest;
}

double micro_batches(const Plan& plan, const Share& share) {
  return 1.0 * (share.leaves.last - share.leaves.first + 1) * plan.job.micro_batch_count() /
         plan.job.reduction_leaves;
}

/// Times of a stage: of one micro-batch at its fastest replica, and of all of the most loaded one.
struct StageTimes {
  double forward_s = std::numeric_limits<double>::infinity();
  double backward_s = std::numeric_limits<double>::infinity();
  double work_s = 0;
};

StageTimes stage_times(const Plan& plan, std::size_t index, const ModelCost& model,
                       const std::vector<const Device*>& devices, const CostOptions& cost) {
  const StagePlan& stage = plan.stages[index];
  const double blocks = 1.0 * (stage.last_block - stage.first_block + 1);
  StageTimes times;
  double tflops_before = 0;
  LayerTimes layers;
  for (const Share& share : stage.shares) {
    const double tflops = replica_tflops(share, devices);
    if (tflops != tflops_before) layers = layer_times(model, plan.job, tflops, plan.tensor, cost);
    tflops_before = tflops;
    double ends_s = 0;
    if (index == 0) ends_s += layers.embedding_forward_s;
    if (index + 1 == plan.stages.size()) ends_s += layers.head_forward_s;
    const double forward_s = blocks * layers.block_forward_s + ends_s;
    const double backward_s = blocks * layers.block_backward_s + ends_s * layers.backward_ratio;
    times.forward_s = std::min(times.forward_s, forward_s);
    times.backward_s = std::min(times.backward_s, backward_s);
    times.work_s = std::max(times.work_s, micro_batches(plan, share) *
                                              (forward_s + backward_s + 2 * layers.overhead_s));
  }
  return times;
}

/// Split for the times of the stages, and speeds of the stages for the formula.
struct Speeds {
  std::vector<double> blocks_s;  ///< Blocks a second, all micro-batches of one.
  double most = 0;               ///< Micro-batches of a replica.
};

Speeds stage_speeds(const Plan& shares, const ModelCost& model,
                    const std::vector<const Device*>& devices, const CostOptions& cost) {
  Speeds speeds;
  for (const StagePlan& stage : shares.stages) {
    double slowest_s = 0;
    double tflops_before = 0;
    LayerTimes t;
    for (const Share& share : stage.shares) {
      const double count = micro_batches(shares, share);
      const double tflops = replica_tflops(share, devices);
      if (tflops != tflops_before) t = layer_times(model, shares.job, tflops, shares.tensor, cost);
      tflops_before = tflops;
      speeds.most = std::max(speeds.most, count);
      slowest_s = std::max(slowest_s, count * (t.block_forward_s + t.block_backward_s));
    }
    speeds.blocks_s.push_back(1 / slowest_s);
  }
  return speeds;
}

}  // namespace

std::vector<StagePlan> deal_shares(const Layout& layout, const std::vector<const Device*>& devices,
                                   std::uint32_t leaves) {
  std::vector<StagePlan> stages;
  for (const auto& units : layout) {
    StagePlan stage;
    std::vector<double> speeds;
    for (const Unit& unit : units) {
      stage.shares.push_back({unit.front(), {}, {unit.begin() + 1, unit.end()}});
      speeds.push_back(replica_tflops(stage.shares.back(), devices));
    }
    const auto runs = split_leaves(leaves, speeds);
    for (std::size_t i = 0; i < runs.size(); ++i) stage.shares[i].leaves = runs[i];
    stages.push_back(std::move(stage));
  }
  return stages;
}

std::vector<std::vector<std::uint32_t>> splits(const Plan& shares, const ModelCost& model,
                                               const std::vector<const Device*>& devices,
                                               const CostOptions& cost, bool every) {
  const std::size_t stages = shares.stages.size();
  std::vector<std::vector<std::uint32_t>> found;
  if (stages > model.blocks) return found;
  if (every && model.blocks <= kExhaustiveBlocksMax) {
    std::vector<std::uint32_t> counts(stages, 0);
    every_split(model.blocks, 0, counts, found);
    return found;
  }
  const Speeds speeds = stage_speeds(shares, model, devices, cost);
  std::vector<BalanceStage> balanced(stages);
  for (std::size_t i = 0; i < stages; ++i) balanced[i].speed = speeds.blocks_s[i] * speeds.most;
  balanced.front().fixed_work += model.embedding_flops / model.block_flops;
  balanced.back().fixed_work += model.head_flops / model.block_flops;
  const std::vector<BalanceLayer> layers(model.blocks, {1, 0, 0});
  if (const auto best = balance(layers, balanced, std::max(0.0, speeds.most - 1))) {
    found.push_back(best->counts);
  }
  const auto add = [&](std::vector<std::uint32_t> counts) {
    if (std::find(found.begin(), found.end(), counts) == found.end()) {
      found.push_back(std::move(counts));
    }
  };
  add(split_by_speed(model.blocks, speeds.blocks_s, 1));
  add(split_equal(model.blocks, static_cast<std::uint32_t>(stages)));
  return found;
}

void put_blocks(const std::vector<std::uint32_t>& counts, Plan& plan) {
  std::uint32_t first = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    plan.stages[i].first_block = first;
    first += counts[i];
    plan.stages[i].last_block = first - 1;
  }
}

double lower_bound_s(const Plan& plan, const ModelCost& model,
                     const std::vector<const Device*>& devices, const CostOptions& cost) {
  double bound_s = 0;
  double before_s = 0;  // what the first micro-batch must go through, and the last one back
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const StageTimes times = stage_times(plan, i, model, devices, cost);
    bound_s = std::max(bound_s, before_s + times.work_s);
    // Chunks and split backward passes let the next stage begin and end earlier.
    double part = 1;
    if (plan.schedule == ScheduleKind::kInterleaved) part = 1.0 / plan.chunks;
    if (plan.schedule == ScheduleKind::kZeroBubble) part = 0.5;
    before_s += part * (times.forward_s + times.backward_s);
  }
  return bound_s;
}

}  // namespace holmes::partition
