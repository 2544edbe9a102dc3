#pragma once

// A search without any cleverness, for comparison, and random models.

#include <algorithm>
#include <limits>

#include "clusters.hpp"
#include "connect.hpp"
#include "holmes/partition/reach.hpp"
#include "holmes/partition/search.hpp"
#include "holmes/partition/split.hpp"

namespace holmes::partition {

inline ModelCost random_model(Random& random, std::uint32_t blocks) {
  ModelCost model;
  model.blocks = blocks;
  model.block_flops = 1e9;
  model.head_flops = 1e9 * random.uniform();
  model.block_parameters = 1000 + random.below(1 << 20);
  model.embedding_parameters = model.head_parameters = 1000 + random.below(1 << 20);
  model.edge_bytes = 1000 + random.below(1 << 20);
  return model;
}

/// The shortest step over every placement of every subset of the devices, every split and schedule.
class BruteForce {
 public:
  BruteForce(const Cluster& cluster, const ModelCost& model, const JobShape& job)
      : cluster_(cluster), model_(model), job_(job), hosts_(hosts_by_device(cluster)) {}

  double best() {
    const auto devices = static_cast<std::uint32_t>(cluster_.device_count());
    for (std::uint32_t stages = 1; stages <= std::min(devices, model_.blocks); ++stages) {
      std::vector<std::uint32_t> places(devices, 0);
      place(0, stages, places);
    }
    return best_;
  }

 private:
  void place(std::uint32_t device, std::uint32_t stages, std::vector<std::uint32_t>& places) {
    if (device == places.size()) return split(stages, places);
    for (places[device] = 0; places[device] <= stages; ++places[device]) {
      place(device + 1, stages, places);
    }
    places[device] = 0;
  }

  void split(std::uint32_t stages, const std::vector<std::uint32_t>& places) {
    Plan plan;
    plan.job = job_;
    plan.stages.resize(stages);
    for (std::uint32_t s = 0; s < stages; ++s) {
      std::vector<double> speeds;
      for (std::uint32_t d = 0; d < places.size(); ++d) {
        if (places[d] != s + 1) continue;
        plan.stages[s].shares.push_back({DeviceId(d), {}, {}});
        speeds.push_back(cluster_.device(DeviceId(d)).tflops);
      }
      if (speeds.empty() || speeds.size() > job_.reduction_leaves) return;
      const auto runs = split_leaves(job_.reduction_leaves, speeds);
      for (std::size_t i = 0; i < runs.size(); ++i) plan.stages[s].shares[i].leaves = runs[i];
    }
    if (!connect(cluster_, hosts_, model_.tied_head, plan)) return;
    blocks(0, 0, plan);
  }

  void blocks(std::uint32_t stage, std::uint32_t first, Plan& plan) {
    if (stage == plan.stages.size()) {
      if (first == model_.blocks) run(plan);
      return;
    }
    for (std::uint32_t last = first; last < model_.blocks; ++last) {
      plan.stages[stage].first_block = first;
      plan.stages[stage].last_block = last;
      blocks(stage + 1, last + 1, plan);
    }
  }

  void run(Plan& plan) {
    for (const ScheduleKind kind : {ScheduleKind::k1F1B, ScheduleKind::kGPipe}) {
      plan.schedule = kind;
      if (!check_memory(plan, cluster_, model_, {})) continue;
      best_ = std::min(best_, simulate(plan, cluster_, model_, {})->step_s);
    }
  }

  const Cluster& cluster_;
  const ModelCost& model_;
  const JobShape job_;
  const std::vector<HostId> hosts_;
  double best_ = std::numeric_limits<double>::infinity();
};

}  // namespace holmes::partition
