// Goal: strategy auto finds the shortest step that its cost model knows, keeps to the memory, and
// is never slower than holmes and megatron. Method: random clusters of few devices beside a search
// without any cleverness; random larger ones beside the other strategies.
#include "holmes/partition/search.hpp"

#include <limits>

#include <gtest/gtest.h>

#include "brute_force.hpp"
#include "clusters.hpp"

namespace holmes::partition {
namespace {

TEST(Search, FindsTheOptimumOfSmallCases) {
  Random random(17);
  int compared = 0;
  while (compared < 15) {
    const Cluster cluster = random_cluster(random);
    if (cluster.device_count() > 4) continue;
    const ModelCost model = random_model(random, static_cast<std::uint32_t>(1 + random.below(5)));
    const JobShape job = *checked_shape({8, 1, 1U << random.below(4)});
    SearchOptions options;
    options.order = false;  // the brute force below tries published schedules only
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

/// Bytes on the fullest device.
double held(const Searched& found, const Cluster& cluster, const ModelCost& model) {
  return tightest(found.plan, cluster, model, found.cost).use.total();
}

TEST(Search, OfEquallyFastPlansTheOneThatHoldsLeastIsKept) {
  const Cluster cluster = two_clusters();
  ModelCost model;  // that of examples/two-clusters.toml
  model.blocks = 6;
  model.block_flops = 125'829'120;
  model.embedding_flops = 24'576;
  model.head_flops = 12'582'912;
  model.block_parameters = 444'864;
  model.embedding_parameters = 73'728;
  model.head_parameters = 49'536;
  model.edge_bytes = 98'304;
  model.block_stash_bytes = 892'928;
  model.head_stash_bytes = 132'096;
  SearchOptions options;
  options.order = false;
  const auto published = search(cluster, model, {32, 4, 8}, options);
  options.order = true;
  const auto found = search(cluster, model, {32, 4, 8}, options);
  ASSERT_TRUE(published && found);
  EXPECT_EQ(published->plan.schedule, ScheduleKind::kGPipe);
  EXPECT_EQ(found->plan.schedule, ScheduleKind::kNetworkAware);
  EXPECT_DOUBLE_EQ(found->predicted.step_s, published->predicted.step_s);
  EXPECT_LT(held(*found, cluster, model), held(*published, cluster, model));
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
