// The checks that every plan must pass, whoever made it; plans also come from the wire, so that
// nothing is taken for granted here.

#include <algorithm>
#include <bit>
#include <set>

#include "holmes/base/limits.hpp"
#include "holmes/partition/plan.hpp"
#include "holmes/partition/schedule.hpp"
#include "paths.hpp"
#include "plan_checks.hpp"

namespace holmes::partition {
namespace {

Error invalid(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

std::string text(std::size_t number) {
  return std::to_string(number);
}

Status check_blocks(const Plan& plan, std::uint32_t blocks) {
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const StagePlan& stage = plan.stages[i];
    if (stage.first_block != next || stage.last_block < stage.first_block ||
        stage.last_block >= blocks) {
      return invalid("plan: stage " + text(i) + " has blocks " + text(stage.first_block) + " to " +
                     text(stage.last_block) + "; they must begin at " + text(next) +
                     " and end below " + text(blocks));
    }
    next = stage.last_block + 1;
  }
  if (next == blocks) return {};
  return invalid("plan: blocks " + text(next) + " to " + text(blocks - 1) + " are on no stage");
}

/// The devices of `share` exist, are new to the plan, as many as the tensor degree, on one host.
Status check_devices(const Share& share, std::uint32_t tensor, const std::vector<HostId>& host_of,
                     const std::string& where, std::vector<bool>& seen) {
  if (share.peers.size() + 1 != tensor) {
    return invalid(where + ": device " + text(share.device.value()) + " has " +
                   text(share.peers.size()) + " peers; the tensor degree is " + text(tensor));
  }
  for (const DeviceId device : share.devices()) {
    if (device.index() >= host_of.size()) {
      return invalid(where + " names device " + text(device.value()) + " of " +
                     text(host_of.size()));
    }
    if (seen[device.index()]) {
      return invalid(where + " uses device " + text(device.value()) + " a second time");
    }
    seen[device.index()] = true;
    if (host_of[device.index()] != host_of[share.device.index()]) {
      return invalid(where + ": devices " + text(share.device.value()) + " and " +
                     text(device.value()) + " share layers but are on different hosts");
    }
  }
  return {};
}

Status check_shares(const Plan& plan, const std::vector<HostId>& host_of) {
  std::vector<bool> seen(host_of.size(), false);
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const std::string where = "plan: stage " + text(i);
    std::uint32_t next = 0;
    for (const Share& share : plan.stages[i].shares) {
      HOLMES_TRY(check_devices(share, plan.tensor, host_of, where, seen));
      if (share.leaves.first != next || share.leaves.last < share.leaves.first ||
          share.leaves.last >= plan.job.reduction_leaves) {
        return invalid(where + ": leaves " + text(share.leaves.first) + " to " +
                       text(share.leaves.last) + " do not follow leaf " + text(next) + " of " +
                       text(plan.job.reduction_leaves));
      }
      next = share.leaves.last + 1;
    }
    if (next != plan.job.reduction_leaves) {
      return invalid(where + ": nobody computes the leaves from " + text(next) + " on");
    }
  }
  return {};
}

/// `devices` are members; `paths` are different fabrics that join their hosts.
Status check_paths(const Cluster& cluster, std::vector<HostId> hosts,
                   const std::vector<FabricId>& paths, const std::string& where) {
  std::sort(hosts.begin(), hosts.end());
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  if (hosts.size() > 1 && paths.empty()) return invalid(where + " spans hosts but has no path");
  std::set<FabricId> seen;
  for (const FabricId fabric : paths) {
    if (fabric.index() >= cluster.fabrics.size() || !seen.insert(fabric).second) {
      return invalid(where + ": fabric " + text(fabric.value()) + " is unknown or named twice");
    }
    if (!hosts.empty() && !joins(cluster, fabric, hosts)) {
      return invalid(where + ": fabric " + cluster.fabrics[fabric.index()].name +
                     " does not join all of its hosts");
    }
  }
  return {};
}

/// Adds the devices of tensor rank `rank` at `stage`.
void add_rank(const StagePlan& stage, std::uint32_t rank, std::vector<DeviceId>& devices) {
  for (const Share& share : stage.shares) {
    devices.push_back(rank == 0 ? share.device : share.peers[rank - 1]);
  }
}

/// The sets of devices that must have a group of `kind`, each exactly once.
std::vector<std::vector<DeviceId>> wanted_groups(const Plan& plan, GroupKind kind, bool tied_head) {
  std::vector<std::vector<DeviceId>> wanted;
  for (const StagePlan& stage : plan.stages) {
    for (std::uint32_t rank = 0; kind == GroupKind::kData && rank < plan.tensor; ++rank) {
      add_rank(stage, rank, wanted.emplace_back());
    }
    if (kind != GroupKind::kTensor || plan.tensor == 1) continue;
    for (const Share& share : stage.shares) wanted.push_back(share.devices());
  }
  if (kind == GroupKind::kVote) wanted.push_back(plan.members());
  if (kind == GroupKind::kTied && tied_head && plan.stages.size() > 1) {
    for (std::uint32_t rank = 0; rank < plan.tensor; ++rank) {
      add_rank(plan.stages.front(), rank, wanted.emplace_back());
      add_rank(plan.stages.back(), rank, wanted.back());
    }
  }
  for (auto& devices : wanted) std::sort(devices.begin(), devices.end());
  std::sort(wanted.begin(), wanted.end());
  return wanted;
}

Status check_groups(const Plan& plan, const Cluster& cluster, const std::vector<HostId>& host_of,
                    bool tied_head) {
  for (const GroupKind kind :
       {GroupKind::kData, GroupKind::kTied, GroupKind::kVote, GroupKind::kTensor}) {
    std::vector<std::vector<DeviceId>> found;
    for (const Group& group : plan.groups) {
      if (group.kind != kind) continue;
      found.push_back(group.devices);
      std::sort(found.back().begin(), found.back().end());
    }
    std::sort(found.begin(), found.end());
    if (found != wanted_groups(plan, kind, tied_head)) {
      return invalid("plan: its " + std::string(to_string(kind)) +
                     " groups are not those that its stages need");
    }
  }
  for (std::size_t i = 0; i < plan.groups.size(); ++i) {
    if (plan.groups[i].kind > GroupKind::kTensor) return invalid("plan: unknown kind of group");
    std::vector<HostId> hosts;
    for (const DeviceId device : plan.groups[i].devices) hosts.push_back(host_of[device.index()]);
    HOLMES_TRY(
        check_paths(cluster, std::move(hosts), plan.groups[i].paths, "plan: group " + text(i)));
  }
  return {};
}

Status check_edges(const Plan& plan, const Cluster& cluster, const std::vector<HostId>& host_of) {
  if (plan.edges.size() + 1 != plan.stages.size()) {
    return invalid("plan: " + text(plan.stages.size()) + " stages with " + text(plan.edges.size()) +
                   " edges");
  }
  for (std::size_t i = 0; i < plan.edges.size(); ++i) {
    const Edge& edge = plan.edges[i];
    const std::string where = "plan: edge " + text(i);
    if (edge.from_stage.index() != i || edge.to_stage.index() != i + 1) {
      return invalid(where + " must go from stage " + text(i) + " to the next");
    }
    HOLMES_TRY(check_paths(cluster, talking_hosts(host_of, plan, i), edge.paths, where));
  }
  return {};
}

}  // namespace

Result<JobShape> checked_shape(JobShape job) {
  if (job.micro_batch == 0 || job.batch == 0 || job.batch % job.micro_batch != 0) {
    return invalid("train.batch = " + text(job.batch) +
                   " must be a multiple of train.micro_batch = " + text(job.micro_batch));
  }
  if (job.micro_batch_count() > kMicroBatchesMax) {
    return invalid("train.batch / train.micro_batch = " + text(job.micro_batch_count()) +
                   " micro-batches a step; at most " + text(kMicroBatchesMax) + " are possible");
  }
  if (job.reduction_leaves == 0) job.reduction_leaves = default_reduction_leaves(job);
  const bool each = job.reduction_leaves == job.micro_batch_count();
  if ((!std::has_single_bit(job.reduction_leaves) && !each) || job.reduction_leaves > kLeavesMax) {
    return invalid("train.reduction_leaves = " + text(job.reduction_leaves) +
                   " must be a power of two, at most " + text(kLeavesMax) +
                   ", or (to plan only) one for each micro-batch");
  }
  if (job.micro_batch_count() % job.reduction_leaves != 0) {
    return invalid("train.reduction_leaves = " + text(job.reduction_leaves) + " must divide the " +
                   text(job.micro_batch_count()) +
                   " micro-batches of a step (train.batch / train.micro_batch)");
  }
  return job;
}

std::vector<HostId> talking_hosts(const std::vector<HostId>& host_of, const Plan& plan,
                                  std::size_t from) {
  std::vector<HostId> talking;
  const auto& receivers = plan.stages[from + 1].shares;
  std::size_t first = 0;
  for (const Share& sender : plan.stages[from].shares) {
    while (receivers[first].leaves.last < sender.leaves.first) ++first;
    for (std::size_t i = first; i < receivers.size(); ++i) {
      if (receivers[i].leaves.first > sender.leaves.last) break;
      const HostId a = host_of[sender.device.index()];
      const HostId b = host_of[receivers[i].device.index()];
      if (a != b) talking.insert(talking.end(), {a, b});
    }
  }
  return talking;
}

Status validate(const Plan& plan, const Cluster& cluster, std::uint32_t blocks, bool tied_head) {
  if (plan.strategy > kStrategyLast || plan.schedule > kScheduleLast) {
    return invalid("plan: unknown strategy or schedule");
  }
  if (plan.empty()) {
    if (plan.groups.empty() && plan.edges.empty()) return {};
    return invalid("plan: groups or edges without a stage");
  }
  HOLMES_TRY_ASSIGN(const JobShape shape, checked_shape(plan.job));
  if (shape != plan.job) return invalid("plan: reduction_leaves is not resolved");
  HOLMES_TRY(check_blocks(plan, blocks));
  if (plan.tensor == 0) return invalid("plan: its tensor degree is 0");
  const auto host_of = hosts_by_device(cluster);
  HOLMES_TRY(check_shares(plan, host_of));
  HOLMES_TRY(check_schedule(plan));
  HOLMES_TRY(check_groups(plan, cluster, host_of, tied_head));
  return check_edges(plan, cluster, host_of);
}

}  // namespace holmes::partition
