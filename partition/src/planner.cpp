// plan(): layout by strategy, then shares, blocks, groups and edges, which all strategies share.

#include <algorithm>
#include <cmath>

#include "holmes/base/limits.hpp"
#include "holmes/partition/plan.hpp"
#include "holmes/partition/schedule.hpp"
#include "holmes/partition/split.hpp"
#include "layout.hpp"
#include "paths.hpp"
#include "plan_checks.hpp"
#include "text.hpp"

namespace holmes::partition {
namespace {

Error invalid(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

Status check_stages(std::size_t stages, std::uint32_t blocks) {
  if (stages <= blocks) return {};
  return invalid(std::to_string(stages) + " stages, but model.layers = " + std::to_string(blocks) +
                 ": each stage needs a layer; set parallel.pipeline to at most " +
                 std::to_string(blocks));
}

Status check_input(const ModelCost& model, const PlanOptions& options) {
  if (model.blocks == 0 || model.blocks > limits::kLayersMax) {
    return invalid("model.layers = " + std::to_string(model.blocks) + " must lie between 1 and " +
                   std::to_string(limits::kLayersMax));
  }
  if (!std::isfinite(options.alpha) || options.alpha <= 0) {
    return invalid("parallel.alpha = " + number(options.alpha) + " must be a positive number");
  }
  if (options.strategy > kStrategyLast || options.schedule > kScheduleLast) {
    return invalid("unknown strategy or schedule");
  }
  if (options.tensor != 1) return invalid("parallel.tensor must be 1 for now");
  return check_stages(options.pipeline, model.blocks);
}

Status check_replicas(const Layout& layout, std::uint32_t leaves) {
  for (std::size_t stage = 0; stage < layout.size(); ++stage) {
    if (layout[stage].size() <= leaves) continue;
    return invalid("stage " + std::to_string(stage) + " has " +
                   counted(layout[stage].size(), "replica") + ", but train.reduction_leaves = " +
                   std::to_string(leaves) + ": each replica needs a leaf; set parallel.data to " +
                   "at most " + std::to_string(leaves) + ", raise parallel.pipeline, or raise " +
                   "train.reduction_leaves (and train.batch / train.micro_batch with it)");
  }
  return {};
}

/// Speed of a stage as its slowest replica allows: its share of the leaves against its own speed.
double stage_speed(const std::vector<const Device*>& devices, const StagePlan& stage,
                   std::uint32_t leaves) {
  double slowest = 0;
  for (const Share& share : stage.shares) {
    const double part = 1.0 * (share.leaves.last - share.leaves.first + 1) / leaves;
    slowest = std::max(slowest, part / devices[share.device.index()]->split_speed());
  }
  return 1 / slowest;
}

void deal_leaves(const Layout& layout, Plan& plan) {
  for (const auto& devices : layout) {
    StagePlan stage;
    const auto runs =
        split_leaves(plan.job.reduction_leaves, static_cast<std::uint32_t>(devices.size()));
    for (std::size_t i = 0; i < devices.size(); ++i) stage.shares.push_back({devices[i], runs[i]});
    plan.stages.push_back(std::move(stage));
  }
}

void deal_blocks(const Cluster& cluster, const ModelCost& model, double alpha, Plan& plan) {
  const auto stages = static_cast<std::uint32_t>(plan.stages.size());
  std::vector<std::uint32_t> counts;
  if (plan.strategy == Strategy::kMegatron) {
    counts = split_equal(model.blocks, stages);
  } else {
    const auto devices = devices_by_rank(cluster);
    std::vector<double> speeds;
    for (const StagePlan& stage : plan.stages) {
      speeds.push_back(stage_speed(devices, stage, plan.job.reduction_leaves));
    }
    counts = split_by_speed(model.blocks, speeds, alpha);
  }
  std::uint32_t first = 0;
  for (std::uint32_t i = 0; i < stages; ++i) {
    plan.stages[i].first_block = first;
    first += counts[i];
    plan.stages[i].last_block = first - 1;
  }
}

std::vector<DeviceId> devices_of(const StagePlan& stage) {
  std::vector<DeviceId> devices;
  for (const Share& share : stage.shares) devices.push_back(share.device);
  return devices;
}

Status add_group(const Cluster& cluster, const std::vector<HostId>& hosts, GroupKind kind,
                 std::vector<DeviceId> devices, const std::string& what, Plan& plan) {
  std::vector<HostId> of;
  for (const DeviceId device : devices) of.push_back(hosts[device.index()]);
  HOLMES_TRY_ASSIGN(PathChoice choice, choose_paths(cluster, std::move(of), what));
  plan.groups.push_back(
      {kind, std::move(devices), std::move(choice.paths), std::move(choice.reason)});
  return {};
}

Status add_groups(const Cluster& cluster, const std::vector<HostId>& hosts, Plan& plan) {
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    HOLMES_TRY(add_group(cluster, hosts, GroupKind::kData, devices_of(plan.stages[i]),
                         "data group of stage " + std::to_string(i), plan));
  }
  if (plan.stages.size() > 1) {
    auto tied = devices_of(plan.stages.front());
    const auto last = devices_of(plan.stages.back());
    tied.insert(tied.end(), last.begin(), last.end());
    HOLMES_TRY(add_group(cluster, hosts, GroupKind::kTied, std::move(tied),
                         "exchange of the tied embedding", plan));
  }
  return add_group(cluster, hosts, GroupKind::kVote, plan.members(), "vote of all members", plan);
}

Status add_edges(const Cluster& cluster, const std::vector<HostId>& hosts, Plan& plan) {
  for (std::uint32_t i = 0; i + 1 < plan.stages.size(); ++i) {
    const std::string what =
        "edge from stage " + std::to_string(i) + " to stage " + std::to_string(i + 1);
    HOLMES_TRY_ASSIGN(PathChoice choice,
                      choose_paths(cluster, talking_hosts(hosts, plan, i), what));
    plan.edges.push_back(
        {StageIndex(i), StageIndex(i + 1), std::move(choice.paths), std::move(choice.reason)});
  }
  return {};
}

}  // namespace

Result<Plan> plan(const Cluster& cluster, const ModelCost& model, const JobShape& job,
                  const PlanOptions& options) {
  HOLMES_TRY(validate(cluster));
  HOLMES_TRY(check_input(model, options));
  Plan result;
  result.strategy = options.strategy;
  result.schedule = options.schedule;
  if (options.schedule == ScheduleKind::kInterleaved) result.chunks = options.chunks;
  HOLMES_TRY_ASSIGN(result.job, checked_shape(job));
  HOLMES_TRY_ASSIGN(const Layout layout, options.strategy == Strategy::kMegatron
                                             ? megatron_layout(cluster, options)
                                             : holmes_layout(cluster, options));
  HOLMES_TRY(check_stages(layout.size(), model.blocks));
  HOLMES_TRY(check_replicas(layout, result.job.reduction_leaves));
  deal_leaves(layout, result);
  deal_blocks(cluster, model, options.alpha, result);
  HOLMES_TRY(check_schedule(result));
  const auto hosts = hosts_by_device(cluster);
  HOLMES_TRY(add_groups(cluster, hosts, result));
  HOLMES_TRY(add_edges(cluster, hosts, result));
  return result;
}

}  // namespace holmes::partition
