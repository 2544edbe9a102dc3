#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "cost/stage_memory.hpp"
#include "holmes/partition/keepers.hpp"
#include "holmes/partition/reach.hpp"

namespace holmes::partition {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;

std::string gib(double bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g GiB", bytes / kGib);
  return text.data();
}

std::string parts_of(const MemoryUse& use) {
  return "weights " + gib(use.weights) + ", gradients " + gib(use.gradients) + ", optimizer " +
         gib(use.optimizer) + ", activations " + gib(use.activations) + ", buffers " +
         gib(use.buffers) + (use.copies > 0 ? ", copies for other hosts " + gib(use.copies) : "");
}

/// A keeper has the copies, and an owner what is on its way to its keeper.
void add_copies(const Plan& plan, const Cluster& cluster, const ModelCost& model,
                const CostOptions& options, std::vector<HostMemory>& result) {
  const auto keepers = keepers_of(plan, cluster);
  std::map<DeviceId, double> layers;  // of each keeper, to load copies from
  for (std::uint32_t s = 0; s < plan.stages.size(); ++s) {
    const StageMemory memory_of(plan, model, StageIndex(s), options, {});
    for (const Share& share : plan.stages[s].shares) {
      const auto keeper = keepers.find(share.device);
      if (keeper == keepers.end()) continue;
      result[cluster.host_of(share.device).index()].use.copies += memory_of.sent_copy_bytes();
      result[cluster.host_of(keeper->second).index()].use.copies += memory_of.copy_bytes();
      double& layer = layers[keeper->second];
      layer = std::max(layer, memory_of.layer_bytes());
    }
  }
  for (const auto& [keeper, bytes] : layers)
    result[cluster.host_of(keeper).index()].use.copies += bytes;
}

}  // namespace

double stage_parameters(const Plan& plan, const ModelCost& model, StageIndex stage) {
  const StagePlan& at = plan.stages[stage.index()];
  double parameters =
      1.0 * (at.last_block - at.first_block + 1) * static_cast<double>(model.block_parameters);
  if (stage.index() == 0) parameters += static_cast<double>(model.embedding_parameters);
  if (stage.index() + 1 == plan.stages.size()) {
    parameters += static_cast<double>(model.head_parameters);
  }
  return parameters / plan.tensor;
}

MemoryUse memory_use(const Plan& plan, const ModelCost& model, StageIndex stage, const Share& share,
                     const CostOptions& options) {
  return StageMemory(plan, model, stage, options, {}).of(share);
}

MemoryShort tightest(const Plan& plan, const Cluster& cluster, const ModelCost& model,
                     const CostOptions& options) {
  const auto devices = devices_by_rank(cluster);
  const auto hosts = hosts_by_device(cluster);
  MemoryShort worst;
  bool any = false;
  for (std::uint32_t s = 0; s < plan.stages.size(); ++s) {
    const StageMemory memory_of(plan, model, StageIndex(s), options, hosts);
    std::vector<std::uint32_t> last;
    MemoryUse use;
    for (const Share& share : plan.stages[s].shares) {
      // Neighbours are alike in clusters of thousands of equal devices.
      auto key = memory_of.key(share);
      if (key != last) use = memory_of.of(share);
      last = std::move(key);
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
  return Error(ErrorCode::kInvalidArgument,
               "memory is short: device " + std::to_string(worst.device.value()) + " (" +
                   host.name + "), which has stage " + std::to_string(worst.stage.value()) +
                   ", needs " + gib(worst.use.total()) + " and has " + gib(worst.memory) + ": " +
                   gib(worst.missing()) + " too little (" + parts_of(worst.use) + ")");
}

std::vector<HostMemory> memory_by_host(const Plan& plan, const Cluster& cluster,
                                       const ModelCost& model, const CostOptions& options) {
  const auto hosts = hosts_by_device(cluster);
  std::vector<HostMemory> result(cluster.hosts.size());
  for (std::size_t h = 0; h < cluster.hosts.size(); ++h) {
    for (const Device& device : cluster.hosts[h].devices) {
      result[h].memory += device.memory_gib * kGib;
    }
  }
  for (std::uint32_t s = 0; s < plan.stages.size(); ++s) {
    const StageMemory memory_of(plan, model, StageIndex(s), options, hosts);
    for (const Share& share : plan.stages[s].shares) {
      const MemoryUse use = memory_of.of(share);
      for (const DeviceId device : share.devices()) {
        MemoryUse& sum = result[hosts[device.index()].index()].use;
        sum.weights += use.weights;
        sum.gradients += use.gradients;
        sum.optimizer += use.optimizer;
        sum.activations += use.activations;
        sum.buffers += use.buffers;
        sum.reserved += use.reserved;
      }
    }
  }
  if (options.copies) add_copies(plan, cluster, model, options, result);
  return result;
}

Status check_host_memory(const Plan& plan, const Cluster& cluster, const ModelCost& model,
                         const CostOptions& options) {
  const auto all = memory_by_host(plan, cluster, model, options);
  const auto worst = std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.missing() < b.missing();
  });
  if (worst == all.end() || worst->missing() <= 0) return {};
  const Host& host = cluster.hosts[static_cast<std::size_t>(worst - all.begin())];
  return Error(ErrorCode::kInvalidArgument,
               "memory is short: host " + host.name + " needs " + gib(worst->use.total()) +
                   " for its layers and has " + gib(worst->memory) +
                   " (memory_gib of its devices): " + gib(worst->missing()) + " too little (" +
                   parts_of(worst->use) + ")");
}

}  // namespace holmes::partition
