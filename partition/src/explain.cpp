// A plan in words: who has what, over which fabric, and why.

#include <algorithm>

#include "holmes/partition/nccl.hpp"
#include "holmes/partition/plan.hpp"
#include "holmes/partition/schedule.hpp"
#include "plan_text.hpp"
#include "text.hpp"

namespace holmes::partition {
namespace {

std::string range(std::uint32_t first, std::uint32_t last) {
  return first == last ? std::to_string(first) : std::to_string(first) + "-" + std::to_string(last);
}

/// How many of `devices` from `first` on follow one another on one host.
std::size_t run_length(const Cluster& cluster, const std::vector<DeviceId>& devices,
                       std::size_t first) {
  const HostId host = cluster.host_of(devices[first]);
  std::size_t end = first + 1;
  while (end < devices.size() && devices[end].value() == devices[end - 1].value() + 1 &&
         cluster.host_of(devices[end]) == host) {
    ++end;
  }
  return end - first;
}

/// "a0/0-7, a1/0-7": devices that follow one another on a host are one range.
std::string device_names(const Cluster& cluster, const std::vector<DeviceId>& devices) {
  constexpr std::size_t kShown = 16;
  std::vector<std::string> names;
  std::size_t next = 0;
  while (next < devices.size() && names.size() < kShown) {
    const std::size_t count = run_length(cluster, devices, next);
    names.push_back(devices_name(cluster, devices[next], count));
    next += count;
  }
  return joined(names) +
         (next < devices.size() ? " and " + std::to_string(devices.size() - next) + " more" : "");
}

std::string fabric_names(const Cluster& cluster, const std::vector<FabricId>& paths) {
  std::string names;
  for (const FabricId path : paths) {
    names += (names.empty() ? "" : ", else ") + cluster.fabrics[path.index()].name;
  }
  return names.empty() ? "no network" : names;
}

bool alike(const Cluster& cluster, const Share& a, const Share& b) {
  const Device& of_a = cluster.device(a.device);
  const Device& of_b = cluster.device(b.device);
  return cluster.host_of(a.device) == cluster.host_of(b.device) && a.peers.empty() &&
         b.peers.empty() && b.device.value() == a.device.value() + 1 &&
         of_a.tflops == of_b.tflops && of_a.training_tflops == of_b.training_tflops &&
         b.leaves.first == a.leaves.last + 1 &&
         b.leaves.last - b.leaves.first == a.leaves.last - a.leaves.first;
}

/// Neighbours of one host with as much to do are told of together.
std::size_t end_of_like_shares(const Cluster& cluster, const StagePlan& stage, std::size_t first) {
  std::size_t end = first + 1;
  while (end < stage.shares.size() && alike(cluster, stage.shares[end - 1], stage.shares[end])) {
    ++end;
  }
  return end;
}

std::string shares_text(const Cluster& cluster, const StagePlan& stage, std::size_t first,
                        std::size_t end) {
  const Share& share = stage.shares[first];
  const Device& device = cluster.device(share.device);
  std::vector<DeviceId> devices{share.device};
  devices.insert(devices.end(), share.peers.begin(), share.peers.end());
  for (std::size_t i = first + 1; i < end; ++i) devices.push_back(stage.shares[i].device);
  return device_names(cluster, devices) + " (" +
         (devices.size() > 1 ? counted(devices.size(), "device") + " of " : "") +
         number(device.tflops) + " TFLOPS" +
         (device.training_tflops > 0 ? ", training at " + number(device.training_tflops) : "") +
         ", leaves " + range(share.leaves.first, stage.shares[end - 1].leaves.last) + ")";
}

std::string stage_text(const Plan& plan, const Cluster& cluster, std::size_t index) {
  const StagePlan& stage = plan.stages[index];
  std::string text = "stage " + std::to_string(index) + ": ";
  if (index == 0) text += "embedding, ";
  text += (stage.first_block == stage.last_block ? "block " : "blocks ") +
          range(stage.first_block, stage.last_block);
  if (index + 1 == plan.stages.size()) text += ", head";
  std::vector<std::string> shares;
  for (std::size_t first = 0; first < stage.shares.size();) {
    const std::size_t end = end_of_like_shares(cluster, stage, first);
    shares.push_back(shares_text(cluster, stage, first, end));
    first = end;
  }
  return text + " on " + joined(shares) + "\n";
}

std::string strategy_text(Strategy strategy) {
  if (strategy == Strategy::kMegatron) {
    return "strategy megatron: devices in rank order, equal numbers of blocks\n";
  }
  if (strategy == Strategy::kAuto) {
    return "strategy auto: the shortest step that the simulator found\n";
  }
  if (strategy != Strategy::kHolmes) {
    return "strategy " + std::string(to_string(strategy)) +
           ": a baseline; devices in rank order, equal numbers of blocks, one fabric for all\n";
  }
  return "strategy holmes: a stage is a cluster, its gradients stay on the cluster's fabric, only "
         "activations cross; blocks in proportion to the speed of the stages\n";
}

std::string_view order_in_words(ScheduleKind schedule) {
  switch (schedule) {
    case ScheduleKind::k1F1B:
      return "a backward pass as soon as there is one, which holds few activations";
    case ScheduleKind::kGPipe:
      return "all forward passes, then all backward passes";
    case ScheduleKind::kInterleaved:
      return "each stage has several chunks of blocks and takes turns between them";
    case ScheduleKind::kZeroBubble:
      return "the gradients of weights are computed when nothing else can be";
    case ScheduleKind::kNetworkAware:
      break;
  }
  return "orders of passes generated for the delays and speeds of this cluster, so that transfers "
         "hide behind computing";
}

std::string schedule_text(const Plan& plan) {
  return "schedule " + std::string(to_string(plan.schedule)) + ": " +
         std::string(order_in_words(plan.schedule)) + "\n";
}

/// What each stage does, by its first replica, and how far that is ahead of 1F1B.
std::string orders_text(const Plan& plan) {
  constexpr std::size_t kShown = 64;
  std::string text;
  Plan usual = plan;
  usual.schedule = ScheduleKind::k1F1B;
  usual.chunks = 1;
  for (std::uint32_t s = 0; s < plan.stages.size(); ++s) {
    const Share& share = plan.stages[s].shares.front();
    text += "  stage " + std::to_string(s) + ": " + share.order.substr(0, kShown) +
            (share.order.size() > kShown ? "..." : "") + ", " +
            (plan.chunks == 1 ? "micro-batches" : "chunks of them") + " in flight at most: " +
            std::to_string(in_flight_max(plan, StageIndex(s), share.device)) +
            " (1f1b: " + std::to_string(in_flight_max(usual, StageIndex(s), share.device)) + ")\n";
  }
  return text;
}

}  // namespace

std::string explain(const Plan& plan, const Cluster& cluster) {
  if (plan.empty()) return "empty plan: nobody trains\n";
  std::string text = strategy_text(plan.strategy);
  text += counted(plan.stages.size(), "stage") + ", " + counted(plan.members().size(), "device") +
          ", " + std::to_string(plan.job.micro_batch_count()) + " micro-batches a step in " +
          std::to_string(plan.job.reduction_leaves) + " reduction leaves\n";
  for (std::size_t i = 0; i < plan.stages.size(); ++i) text += stage_text(plan, cluster, i);
  text += schedule_text(plan);
  if (plan.schedule == ScheduleKind::kNetworkAware) text += orders_text(plan);
  for (const Edge& edge : plan.edges) {
    text += "edge " + std::to_string(edge.from_stage.value()) + " -> " +
            std::to_string(edge.to_stage.value()) + ": " + fabric_names(cluster, edge.paths) +
            "\n  because " + edge.reason + "\n";
  }
  for (const Group& group : plan.groups) {
    text += std::string(to_string(group.kind)) + " group " + device_names(cluster, group.devices) +
            ": " + fabric_names(cluster, group.paths) + "\n  because " + group.reason + "\n";
    if (const auto nccl = nccl_settings(cluster, group)) {
      text += "  nccl: its own communicator, " + describe(cluster, *nccl) + "\n";
    }
  }
  for (const UnusedDevice& unused : unused_devices(plan, cluster)) {
    text += "unused: " + device_name(cluster, unused.device) + ", " + unused.reason + "\n";
  }
  return text;
}

}  // namespace holmes::partition
