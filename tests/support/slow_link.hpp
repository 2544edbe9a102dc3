#pragma once

// Two clusters with a slow network between them, a pipeline over both, and the published schedules
// that may hold so many micro-batches: for tests of generated orders and for their table.

#include <algorithm>
#include <string>
#include <vector>

#include "holmes/base/assert.hpp"
#include "holmes/partition/order.hpp"
#include "holmes/partition/schedule.hpp"
#include "holmes/partition/simulate.hpp"

namespace holmes::partition::testing {

struct SlowLink {
  double latency_ms = 1;
  double gbit_s = 25;
  std::uint32_t stages = 4;  ///< Half of them in each cluster, a host each.
  std::uint32_t micro_batches = 16;
  std::uint32_t replicas = 1;  ///< Of each stage, on hosts of their own.
  double trunk_gbit_s = 0;     ///< Of all that crosses; 0: each NIC's own.
};

/// Hosts of one accelerator of 150 TFLOPS, with 200 Gb/s inside their cluster.
inline Cluster slow_link_cluster(const SlowLink& link) {
  Cluster cluster;
  cluster.fabrics = {
      {"ib-a", NicKind::kInfiniBand, 200, 5},
      {"ib-b", NicKind::kInfiniBand, 200, 5},
      {"wan", NicKind::kEthernet, link.gbit_s, 1000 * link.latency_ms, link.trunk_gbit_s}};
  for (std::uint32_t h = 0; h < link.stages * link.replicas; ++h) {
    const std::uint32_t side = h < (link.stages + 1) / 2 * link.replicas ? 0 : 1;
    Host host{"h" + std::to_string(h), side == 0 ? "a" : "b", "", {{"a100", 1, 150, 1000}}, {}};
    host.nics = {{"ib0", FabricId(side), 200, 5},
                 {"eth0", FabricId(2), link.gbit_s, 1000 * link.latency_ms}};
    cluster.hosts.push_back(host);
  }
  return cluster;
}

/// 8 blocks a stage of 4,096 channels at 2,048 tokens, half precision: 16.8 MB between stages.
inline ModelCost slow_link_model(const SlowLink& link) {
  ModelCost model;
  model.blocks = 8 * link.stages;
  model.block_flops = 24.0 * 2048 * 4096 * 4096;
  model.block_parameters = 1000;  // sums of gradients are not what is looked at
  model.embedding_parameters = model.head_parameters = 1000;
  model.edge_bytes = std::uint64_t{2048} * 4096 * 2;
  return model;
}

inline Plan slow_link_plan(const SlowLink& link) {
  PlanOptions options;
  options.strategy = Strategy::kMegatron;
  options.pipeline = link.stages;
  const std::uint32_t leaves = std::min(8U, link.micro_batches);
  const auto made = plan(slow_link_cluster(link), slow_link_model(link),
                         {link.micro_batches * link.replicas, 1, leaves * link.replicas}, options);
  HOLMES_ASSERT(made, made.error().message().c_str());
  return *made;
}

inline double step_s(const SlowLink& link, const Plan& plan) {
  const auto simulated = simulate(plan, slow_link_cluster(link), slow_link_model(link), {});
  HOLMES_ASSERT(simulated, simulated.error().message().c_str());
  return simulated->step_s;
}

struct Published {
  std::string name;
  Plan plan;
};

/// The plan with a published schedule, each kind that holds no more than `held` micro-batches.
inline std::vector<Published> published(const SlowLink& link, std::uint32_t held, bool whole) {
  std::vector<Published> all;
  const Plan base = slow_link_plan(link);
  const auto add = [&](std::string name, const Plan& plan) {
    for (std::uint32_t s = 0; s < link.stages; ++s) {
      for (const Share& share : plan.stages[s].shares) {
        if (in_flight_max(plan, StageIndex(s), share.device) > held * plan.chunks) return;
      }
    }
    all.push_back({std::move(name), plan});
  };
  Plan plan = base;
  plan.schedule = ScheduleKind::kGPipe;
  add("gpipe", plan);
  if (!whole) {
    plan.schedule = ScheduleKind::kZeroBubble;
    add("zero-bubble", plan);
    plan.schedule = ScheduleKind::kInterleaved;
    plan.chunks = 2;
    if (check_schedule(plan)) add("interleaved", plan);
    plan.chunks = 1;
  }
  plan.schedule = ScheduleKind::kNetworkAware;
  for (std::uint32_t extra = 0; extra < link.micro_batches; ++extra) {
    for (std::uint32_t s = 0; s < link.stages; ++s) {
      const std::uint32_t depth = std::min({link.micro_batches, held, link.stages - s + extra});
      std::string word(depth, 'F');
      for (std::uint32_t k = 0; k < link.micro_batches; ++k) {
        word += 'B';
        if (k + depth < link.micro_batches) word += 'F';
      }
      for (Share& share : plan.stages[s].shares) share.order = word;
    }
    add("1f1b+" + std::to_string(extra), plan);
  }
  return all;
}

}  // namespace holmes::partition::testing
