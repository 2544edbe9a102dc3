// A plan in words: who has what, over which fabric, and why.

#include <algorithm>

#include "holmes/partition/nccl.hpp"
#include "holmes/partition/plan.hpp"
#include "plan_text.hpp"
#include "text.hpp"

namespace holmes::partition {
namespace {

std::string range(std::uint32_t first, std::uint32_t last) {
  return first == last ? std::to_string(first) : std::to_string(first) + "-" + std::to_string(last);
}

std::string device_name(const Cluster& cluster, DeviceId device) {
  const Host& host = cluster.hosts[cluster.host_of(device).index()];
  if (host.devices.size() == 1) return host.name;
  return host.name + "/" + std::to_string(device.value());
}

std::string device_names(const Cluster& cluster, const std::vector<DeviceId>& devices) {
  constexpr std::size_t kShown = 16;
  std::vector<std::string> names;
  for (const DeviceId device : devices) {
    if (names.size() == kShown) break;
    names.push_back(device_name(cluster, device));
  }
  return joined(names) + (devices.size() > kShown
                              ? " and " + std::to_string(devices.size() - kShown) + " more"
                              : "");
}

std::string fabric_names(const Cluster& cluster, const std::vector<FabricId>& paths) {
  std::string names;
  for (const FabricId path : paths) {
    names += (names.empty() ? "" : ", else ") + cluster.fabrics[path.index()].name;
  }
  return names.empty() ? "no network" : names;
}

std::string stage_text(const Plan& plan, const Cluster& cluster, std::size_t index) {
  const StagePlan& stage = plan.stages[index];
  std::string text = "stage " + std::to_string(index) + ": ";
  if (index == 0) text += "embedding, ";
  text += (stage.first_block == stage.last_block ? "block " : "blocks ") +
          range(stage.first_block, stage.last_block);
  if (index + 1 == plan.stages.size()) text += ", head";
  std::vector<std::string> shares;
  for (const Share& share : stage.shares) {
    const Device& device = cluster.device(share.device);
    shares.push_back(
        device_name(cluster, share.device) + " (" +
        (share.peers.empty() ? "" : counted(share.peers.size() + 1, "device") + " of ") +
        number(device.tflops) + " TFLOPS" +
        (device.training_tflops > 0 ? ", training at " + number(device.training_tflops) : "") +
        ", leaves " + range(share.leaves.first, share.leaves.last) + ")");
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

}  // namespace

std::string explain(const Plan& plan, const Cluster& cluster) {
  if (plan.empty()) return "empty plan: nobody trains\n";
  std::string text = strategy_text(plan.strategy);
  text += counted(plan.stages.size(), "stage") + ", " + counted(plan.members().size(), "device") +
          ", " + std::to_string(plan.job.micro_batch_count()) + " micro-batches a step in " +
          std::to_string(plan.job.reduction_leaves) + " reduction leaves\n";
  for (std::size_t i = 0; i < plan.stages.size(); ++i) text += stage_text(plan, cluster, i);
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
