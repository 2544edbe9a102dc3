// plan(): layout by strategy, then shares, blocks, groups and edges, which all strategies share.

#include <algorithm>
#include <cmath>
#include <limits>

#include "connect.hpp"
#include "holmes/base/limits.hpp"
#include "holmes/partition/order.hpp"
#include "holmes/partition/plan.hpp"
#include "holmes/partition/schedule.hpp"
#include "holmes/partition/search.hpp"
#include "holmes/partition/split.hpp"
#include "layout.hpp"
#include "optimal_split.hpp"
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
  if (options.tensor == 0 || options.tensor > limits::kDevicesMax) {
    return invalid("parallel.tensor = " + std::to_string(options.tensor) +
                   " must lie between 1 and " + std::to_string(limits::kDevicesMax));
  }
  if (options.split > SplitRule::kOptimal) return invalid("unknown rule to split the layers");
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

/// A replica is as fast as its slowest device, times their number.
double unit_speed(const DeviceTable& devices, const Unit& unit) {
  double slowest = std::numeric_limits<double>::infinity();
  for (const DeviceId device : unit) {
    slowest = std::min(slowest, devices[device.index()]->split_speed());
  }
  return slowest * static_cast<double>(unit.size());
}

/// Leaves by speed; strategy megatron knows no speeds.
void deal_leaves(const DeviceTable& devices, Layout layout, Plan& plan) {
  for (auto& units : layout) {
    std::vector<double> speeds;
    for (const Unit& unit : units) {
      speeds.push_back(plan.strategy == Strategy::kMegatron ? 1 : unit_speed(devices, unit));
    }
    const auto runs = split_leaves(plan.job.reduction_leaves, speeds);
    StagePlan stage;
    for (std::size_t i = 0; i < units.size(); ++i) {
      stage.shares.push_back({units[i].front(), runs[i], {units[i].begin() + 1, units[i].end()}});
    }
    plan.stages.push_back(std::move(stage));
  }
}

/// Speed of a stage as its slowest replica allows: its part of the leaves against its own speed.
double stage_speed(const DeviceTable& devices, const StagePlan& stage, std::uint32_t leaves) {
  double slowest = 0;
  for (const Share& share : stage.shares) {
    const double part = 1.0 * (share.leaves.last - share.leaves.first + 1) / leaves;
    slowest = std::max(slowest, part / unit_speed(devices, share.devices()));
  }
  return 1 / slowest;
}

std::vector<double> stage_speeds(const DeviceTable& devices, const Plan& plan) {
  std::vector<double> speeds;
  for (const StagePlan& stage : plan.stages) {
    speeds.push_back(stage_speed(devices, stage, plan.job.reduction_leaves));
  }
  return speeds;
}

SplitRule split_rule(const PlanOptions& options) {
  if (options.split != SplitRule::kDefault) return options.split;
  return options.strategy == Strategy::kMegatron ? SplitRule::kEqual : SplitRule::kFormula;
}

void set_blocks(const std::vector<std::uint32_t>& counts, Plan& plan) {
  std::uint32_t first = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    plan.stages[i].first_block = first;
    first += counts[i];
    plan.stages[i].last_block = first - 1;
  }
}

Status deal_blocks(const DeviceTable& devices, const ModelCost& model, const PlanOptions& options,
                   Plan& plan) {
  const auto stages = static_cast<std::uint32_t>(plan.stages.size());
  const auto speeds = stage_speeds(devices, plan);
  const MemoryFloor floor(devices, model, plan);
  switch (split_rule(options)) {
    case SplitRule::kOptimal: {
      HOLMES_TRY_ASSIGN(const Balance best, optimal_split(model, plan, speeds, floor));
      set_blocks(best.counts, plan);
      return {};
    }
    case SplitRule::kEqual:
      set_blocks(split_equal(model.blocks, stages), plan);
      break;
    default:
      set_blocks(split_by_speed(model.blocks, speeds, options.alpha), plan);
  }
  if (floor.check(plan)) return {};
  // Name the nearest thing that fits, if there is any.
  const auto best = optimal_split(model, plan, speeds, floor);
  if (!best) return best.error();
  return floor.check(plan).error().in(
      "layers split " +
      std::string(split_rule(options) == SplitRule::kEqual ? "equally" : "in proportion to speed"));
}

/// The devices of tensor rank `rank` in all replicas of `stage`.
void add_rank(const StagePlan& stage, std::uint32_t rank, std::vector<DeviceId>& devices) {
  for (const Share& share : stage.shares) {
    devices.push_back(rank == 0 ? share.device : share.peers[rank - 1]);
  }
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

Status add_groups(const Cluster& cluster, const std::vector<HostId>& hosts, bool tied_head,
                  Plan& plan) {
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    for (std::uint32_t rank = 0; rank < plan.tensor; ++rank) {
      std::vector<DeviceId> devices;
      add_rank(plan.stages[i], rank, devices);
      HOLMES_TRY(add_group(cluster, hosts, GroupKind::kData, std::move(devices),
                           "data group of stage " + std::to_string(i), plan));
    }
  }
  const bool has_tied = tied_head && plan.stages.size() > 1;
  for (std::uint32_t rank = 0; has_tied && rank < plan.tensor; ++rank) {
    std::vector<DeviceId> tied;
    add_rank(plan.stages.front(), rank, tied);
    add_rank(plan.stages.back(), rank, tied);
    HOLMES_TRY(add_group(cluster, hosts, GroupKind::kTied, std::move(tied),
                         "exchange of the tied embedding", plan));
  }
  HOLMES_TRY(
      add_group(cluster, hosts, GroupKind::kVote, plan.members(), "vote of all members", plan));
  if (plan.tensor == 1) return {};
  for (const StagePlan& stage : plan.stages) {
    for (const Share& share : stage.shares) {
      plan.groups.push_back({GroupKind::kTensor, share.devices(), {}, "within one host"});
    }
  }
  return {};
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

/// The baselines place and split as megatron does; how they run differs (search.hpp).
bool is_baseline(Strategy strategy) {
  return strategy >= Strategy::kMegatronLm;
}

}  // namespace

Status connect(const Cluster& cluster, const std::vector<HostId>& hosts, bool tied_head,
               Plan& plan) {
  HOLMES_TRY(add_groups(cluster, hosts, tied_head, plan));
  return add_edges(cluster, hosts, plan);
}

Result<Plan> plan(const Cluster& cluster, const ModelCost& model, const JobShape& job,
                  const PlanOptions& options) {
  HOLMES_TRY(validate(cluster));
  HOLMES_TRY(check_input(model, options));
  if (options.strategy == Strategy::kAuto) {
    SearchOptions wanted;
    wanted.plan = options;
    HOLMES_TRY_ASSIGN(Searched found, search(cluster, model, job, wanted));
    return std::move(found.plan);
  }
  if (is_baseline(options.strategy)) {
    PlanOptions megatron = options;
    megatron.strategy = Strategy::kMegatron;
    HOLMES_TRY_ASSIGN(Plan baseline, plan(cluster, model, job, megatron));
    baseline.strategy = options.strategy;
    return baseline;
  }
  Plan result;
  result.strategy = options.strategy;
  result.schedule = options.schedule;
  if (options.schedule == ScheduleKind::kInterleaved) result.chunks = options.chunks;
  HOLMES_TRY_ASSIGN(result.job, checked_shape(job));
  result.tensor = options.tensor;
  HOLMES_TRY_ASSIGN(Layout layout, options.strategy == Strategy::kMegatron
                                       ? megatron_layout(cluster, options)
                                       : holmes_layout(cluster, options));
  HOLMES_TRY(check_stages(layout.size(), model.blocks));
  HOLMES_TRY(check_replicas(layout, result.job.reduction_leaves));
  const DeviceTable devices = devices_by_rank(cluster);
  deal_leaves(devices, std::move(layout), result);
  HOLMES_TRY(deal_blocks(devices, model, options, result));
  const bool ordered = options.schedule == ScheduleKind::kNetworkAware;
  if (!ordered) HOLMES_TRY(check_schedule(result));
  const auto hosts = hosts_by_device(cluster);
  HOLMES_TRY(connect(cluster, hosts, model.tied_head, result));
  if (ordered) HOLMES_TRY(order_passes(cluster, model, {}, options.order, result));
  return result;
}

}  // namespace holmes::partition
