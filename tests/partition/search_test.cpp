// Goal: strategy auto finds the shortest step that its cost model knows, keeps to the memory, and
// is never slower than holmes and megatron. Method: random clusters of few devices beside a search
// without any cleverness; random larger ones beside the other strategies.
#include "holmes/partition/search.hpp"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "clusters.hpp"
#include "connect.hpp"
#include "holmes/partition/reach.hpp"
#include "holmes/partition/split.hpp"

namespace holmes::partition {
namespace {

ModelCost random_model(Random& random, std::uint32_t blocks) {
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
    if (!connect(cluster_, hosts_, plan)) return;
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

TEST(Search, FindsTheOptimumOfSmallCases) {
  Random random(17);
  int compared = 0;
  while (compared < 15) {
    const Cluster cluster = random_cluster(random);
    if (cluster.device_count() > 4) continue;
    const ModelCost model = random_model(random, static_cast<std::uint32_t>(1 + random.below(5)));
    const JobShape job = *checked_shape({8, 1, 1U << random.below(4)});
    SearchOptions options;
    const auto found = search(cluster, model, job, options);
    const double best = BruteForce(cluster, model, job).best();
    ASSERT_EQ(found.has_value(), best < std::numeric_limits<double>::infinity());
    if (!found) continue;
    EXPECT_LE(found->predicted.step_s, 1.01 * best);
    EXPECT_GE(found->predicted.step_s, best * (1 - 1e-9));
    const Status valid = validate(found->plan, cluster, model.blocks);
    EXPECT_TRUE(valid) << valid.error().message();
    ++compared;
  }
}

TEST(Search, IsNeverSlowerThanTheOtherStrategies) {
  Random random(23);
  int compared = 0;
  for (int round = 0; round < 30; ++round) {
    const Cluster cluster = random_cluster(random);
    const ModelCost model = random_model(random, static_cast<std::uint32_t>(4 + random.below(12)));
    SearchOptions options;
    const auto found = search(cluster, model, {32, 1, 32}, options);
    for (const Strategy strategy : {Strategy::kHolmes, Strategy::kMegatron}) {
      options.plan.strategy = strategy;
      const auto other = predict(cluster, model, {32, 1, 32}, options);
      if (!other || !check_memory(other->plan, cluster, model, other->cost)) continue;
      ASSERT_TRUE(found) << found.error().message();
      EXPECT_LE(found->predicted.step_s, other->predicted.step_s * (1 + 1e-9));
      ++compared;
    }
    if (found) {
      EXPECT_TRUE(check_memory(found->plan, cluster, model, found->cost));
      EXPECT_TRUE(check_runnable(found->plan));
    }
  }
  EXPECT_GT(compared, 20);
}

TEST(Search, SaysHowMuchMemoryIsMissing) {
  Cluster cluster = two_clusters();
  ModelCost model = small_model(4);
  model.block_parameters = 1 << 30;
  SearchOptions options;
  const auto found = search(cluster, model, {8, 1, 8}, options);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message().find("too little"), std::string::npos)
      << found.error().message();
}

TEST(Search, BaselinesKnowOneFabricOnly) {
  const Cluster cluster = two_clusters();
  const ModelCost model = small_model(4);
  SearchOptions options;
  for (const Strategy strategy :
       {Strategy::kMegatronLm, Strategy::kMegatronDeepspeed, Strategy::kMegatronLlama}) {
    options.plan.strategy = strategy;
    const auto found = predict(cluster, model, {8, 1, 8}, options);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->plan.strategy, strategy);
    EXPECT_FALSE(found->cost.nic_selection);
    for (const ChannelUse& use : found->predicted.channels) EXPECT_EQ(use.fabric, FabricId(2));
  }
}

}  // namespace
}  // namespace holmes::partition
