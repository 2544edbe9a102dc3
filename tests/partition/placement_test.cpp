// Goal: groups are those of the published formulas where clusters are equal blocks of ranks, and
// sensible ones everywhere else. Method: exact groups for small clusters of each odd shape.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clusters.hpp"
#include "holmes/partition/groups.hpp"
#include "holmes/partition/plan.hpp"

namespace holmes::partition {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr JobShape kJob{64, 1, 16};

/// One cluster a letter of `hosts`, in that order: "aab" has two hosts in a, one in b. Each host
/// has `devices` devices; clusters named in `fast` share one InfiniBand, others have their own
/// RoCE; Ethernet joins all.
Cluster letters(const std::string& hosts, std::uint32_t devices, const std::string& fast = "") {
  Cluster cluster;
  cluster.fabrics = {{"ethernet", NicKind::kEthernet, 1, 100}, {"ib", NicKind::kInfiniBand, 10, 5}};
  for (char c = 'a'; c <= 'z'; ++c) {
    cluster.fabrics.push_back({std::string("roce-") + c, NicKind::kRoce, 8, 8});
  }
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const std::string name(1, hosts[i]);
    Host host{"h" + std::to_string(i), name, "", {}, {{"eth0", FabricId(0), 1, 100}}};
    host.devices.assign(devices, Device{});
    const bool ib = fast.find(hosts[i]) != std::string::npos;
    const auto own = static_cast<std::uint32_t>(2 + hosts[i] - 'a');
    host.nics.push_back({"fast0", FabricId(ib ? 1 : own), ib ? 10.0 : 8.0, ib ? 5.0 : 8.0});
    cluster.hosts.push_back(host);
  }
  return cluster;
}

Plan plan_of(const Cluster& cluster, const PlanOptions& options) {
  auto result = plan(cluster, small_model(24), kJob, options);
  EXPECT_TRUE(result) << result.error().message();
  if (!result) return {};
  const Status valid = validate(*result, cluster, 24);
  EXPECT_TRUE(valid) << valid.error().message();
  return *result;
}

RankGroups groups_of(const Plan& plan, GroupKind kind) {
  RankGroups groups;
  for (const Group& group : plan.groups) {
    if (group.kind != kind) continue;
    auto& ranks = groups.emplace_back();
    for (const DeviceId device : group.devices) ranks.push_back(device.value());
  }
  return groups;
}

/// Ranks through which one micro-batch goes, by tensor rank and replica.
RankGroups pipelines_of(const Plan& plan) {
  RankGroups groups;
  for (std::size_t replica = 0; replica < plan.stages[0].shares.size(); ++replica) {
    for (std::uint32_t rank = 0; rank < plan.tensor; ++rank) {
      auto& ranks = groups.emplace_back();
      for (const StagePlan& stage : plan.stages) {
        ranks.push_back(stage.shares.at(replica).devices().at(rank).value());
      }
    }
  }
  return groups;
}

/// Whether all hosts of the data group of `stage` are in one cluster.
bool in_one_cluster(const Cluster& cluster, const Plan& plan, std::size_t stage) {
  const auto name = [&](const Share& share) {
    return cluster.hosts[cluster.host_of(share.device).index()].cluster;
  };
  const auto& shares = plan.stages[stage].shares;
  return std::all_of(shares.begin(), shares.end(),
                     [&](const Share& share) { return name(share) == name(shares[0]); });
}

TEST(Placement, PublishedExample) {
  // n = 16, t = 2, p = 4, in two clusters of two hosts.
  const Cluster cluster = letters("aabb", 4);
  for (const Strategy strategy : {Strategy::kHolmes, Strategy::kMegatron}) {
    const Plan made = plan_of(cluster, {.strategy = strategy, .pipeline = 4, .tensor = 2});
    EXPECT_EQ(groups_of(made, GroupKind::kData),
              (RankGroups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
    EXPECT_EQ(groups_of(made, GroupKind::kTensor),
              (RankGroups{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}}));
    EXPECT_EQ(pipelines_of(made),
              (RankGroups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
    EXPECT_EQ(groups_of(made, GroupKind::kTied), (RankGroups{{0, 2, 12, 14}, {1, 3, 13, 15}}));
  }
}

TEST(Placement, EqualBlocksFollowTheFormulas) {
  for (const std::uint32_t tensor : {1U, 2U, 4U}) {
    for (const std::uint32_t pipeline : {2U, 4U}) {
      const Cluster cluster = letters("aabb", 4);
      const Plan made = plan_of(cluster, {.pipeline = pipeline, .tensor = tensor});
      EXPECT_EQ(groups_of(made, GroupKind::kData), data_groups(16, tensor, pipeline));
      EXPECT_EQ(pipelines_of(made), pipeline_groups(16, pipeline));
      if (tensor > 1) {
        EXPECT_EQ(groups_of(made, GroupKind::kTensor), tensor_groups(16, tensor));
      }
      for (std::size_t stage = 0; stage < pipeline; ++stage) {
        EXPECT_TRUE(in_one_cluster(cluster, made, stage));
      }
    }
  }
}

TEST(Placement, RanksInAnyOrder) {
  const Cluster cluster = letters("abab", 2);
  const Plan made = plan_of(cluster, {.tensor = 2});
  EXPECT_EQ(groups_of(made, GroupKind::kData), (RankGroups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
}

TEST(Placement, UnequalClusters) {
  const Cluster cluster = letters("aaab", 2);
  const Plan made = plan_of(cluster, {});
  EXPECT_EQ(groups_of(made, GroupKind::kData), (RankGroups{{0, 1, 2, 3, 4, 5}, {6, 7}}));
  // The larger cluster has the larger part of the layers.
  EXPECT_GT(made.stages[0].last_block, 15U);
}

TEST(Placement, ThreeClustersAreThreeStages) {
  const Cluster cluster = letters("aabbcc", 2);
  const Plan made = plan_of(cluster, {});
  ASSERT_EQ(made.stages.size(), 3U);
  for (std::size_t stage = 0; stage < 3; ++stage) {
    EXPECT_TRUE(in_one_cluster(cluster, made, stage));
  }
}

TEST(Placement, MoreStagesThanClusters) {
  const Cluster cluster = letters("aab", 2);
  const Plan made = plan_of(cluster, {.pipeline = 5});
  ASSERT_EQ(made.stages.size(), 5U);
  for (std::size_t stage = 0; stage < 5; ++stage) {
    EXPECT_TRUE(in_one_cluster(cluster, made, stage));
  }
}

TEST(Placement, FewerStagesMergeWhatAFastFabricJoinsWhereverItStands) {
  // a, c and e are on one InfiniBand; b and d have nothing in common but Ethernet.
  const Cluster cluster = letters("abcde", 1, "ace");
  const Plan made = plan_of(cluster, {.pipeline = 3});
  EXPECT_EQ(groups_of(made, GroupKind::kData), (RankGroups{{0, 2, 4}, {1}, {3}}));
  EXPECT_EQ(made.groups[0].paths.front(), FabricId(1));
}

TEST(Placement, OnlyWhatMustIsMergedOverTheSlowFabric) {
  const Cluster cluster = letters("abcde", 1, "ace");
  const Plan made = plan_of(cluster, {.pipeline = 2});
  EXPECT_EQ(groups_of(made, GroupKind::kData), (RankGroups{{0, 2, 4}, {1, 3}}));
}

TEST(Placement, NeighboursAreThoseThatAFastFabricJoins) {
  // In the order a b c both edges would take Ethernet; in the order a c b one takes InfiniBand.
  const Cluster cluster = letters("abc", 1, "ac");
  const Plan made = plan_of(cluster, {});
  EXPECT_EQ(groups_of(made, GroupKind::kData), (RankGroups{{0}, {2}, {1}}));
  EXPECT_EQ(made.edges[0].paths.front(), FabricId(1));
  EXPECT_EQ(made.edges[1].paths.front(), FabricId(0));
}

TEST(Placement, FactsThatContradictKeepMembersApart) {
  Cluster cluster = letters("abcd", 1, "abcd");
  for (const std::size_t host : {0, 2}) cluster.hosts[host].nics[1].subnet = "s0";
  for (const std::size_t host : {1, 3}) cluster.hosts[host].nics[1].subnet = "s1";
  const Plan made = plan_of(cluster, {.pipeline = 2});
  EXPECT_EQ(groups_of(made, GroupKind::kData), (RankGroups{{0, 2}, {1, 3}}));
  EXPECT_EQ(made.groups[0].paths.front(), FabricId(1));
}

TEST(Placement, TensorGroupsStayWithinAHostAndSayWhatIsLeftOver) {
  Cluster cluster = letters("aab", 3);
  cluster.hosts[2].devices.resize(1);
  const Plan made = plan_of(cluster, {.tensor = 2});
  EXPECT_EQ(groups_of(made, GroupKind::kTensor), (RankGroups{{0, 1}, {3, 4}}));
  EXPECT_THAT(explain(made, cluster),
              AllOf(HasSubstr("unused: h0/2, since its host's 3 devices are no multiple of"),
                    HasSubstr("unused: h2, since its host's 1 devices")));
  const auto refused = plan(cluster, small_model(24), kJob, {.tensor = 4});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(),
              HasSubstr("tensor groups stay within a host, but no host has over 3 devices (h0)"));
}

TEST(Placement, MegatronRefusesTensorGroupsAcrossHosts) {
  const Cluster cluster = letters("ab", 3);
  const auto refused = plan(cluster, small_model(24), kJob,
                            {.strategy = Strategy::kMegatron, .pipeline = 1, .tensor = 2});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(),
              AllOf(HasSubstr("devices 2 to 3 into one tensor group"), HasSubstr("h0 and h1")));
}

TEST(Placement, SlowReplicasGetFewerLeaves) {
  Cluster cluster = letters("aa", 1);
  cluster.hosts[0].devices[0].tflops = 3;
  cluster.hosts[1].devices[0].tflops = 1;
  const Plan made = plan_of(cluster, {});
  EXPECT_EQ(made.stages[0].shares[0].leaves, (LeafRange{0, 11}));
  EXPECT_EQ(made.stages[0].shares[1].leaves, (LeafRange{12, 15}));
  const Plan equal = plan_of(cluster, {.strategy = Strategy::kMegatron});
  EXPECT_EQ(equal.stages[0].shares[0].leaves, (LeafRange{0, 7}));
}

TEST(Split, OptimalCountsTheHeadAndTheMemory) {
  Cluster cluster = letters("ab", 1);
  ModelCost model = small_model(24);
  model.head_flops = 4 * model.block_flops;
  const auto counts = [&](SplitRule rule) {
    const auto made = plan(cluster, model, kJob, {.split = rule});
    EXPECT_TRUE(made) << made.error().message();
    return made ? made->stages[0].last_block + 1 : 0;
  };
  EXPECT_EQ(counts(SplitRule::kDefault), 12U);
  EXPECT_EQ(counts(SplitRule::kOptimal), 14U);
  // 10 GiB a block with its moments; device a holds 12 of them, device b all.
  model.block_parameters = 10ULL * 1024 * 1024 * 1024 / 16;
  cluster.hosts[0].devices[0].memory_gib = 125;
  cluster.hosts[1].devices[0].memory_gib = 500;
  EXPECT_EQ(counts(SplitRule::kOptimal), 12U);
  cluster.hosts[0].devices[0].memory_gib = 85;
  EXPECT_EQ(counts(SplitRule::kOptimal), 8U);
  const auto formula = plan(cluster, model, kJob, {});
  ASSERT_FALSE(formula);
  EXPECT_THAT(formula.error().message(),
              AllOf(HasSubstr("stage 0 with 12 layers needs at least 120"),
                    HasSubstr("set parallel.split = \"optimal\", which fits")));
  cluster.hosts[1].devices[0].memory_gib = 100;
  const auto never = plan(cluster, model, kJob, {});
  ASSERT_FALSE(never);
  EXPECT_THAT(never.error().message(),
              AllOf(HasSubstr("however the layers are split"), HasSubstr("GiB too much; raise")));
}

}  // namespace
}  // namespace holmes::partition
