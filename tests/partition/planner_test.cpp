// Goal: both strategies place the demo's job as the paper does, and say what is wrong otherwise.
// Method: exact plans for small clusters; one error for each rule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clusters.hpp"
#include "holmes/partition/plan.hpp"

namespace holmes::partition {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<std::vector<std::uint32_t>> layout_of(const Plan& plan) {
  std::vector<std::vector<std::uint32_t>> layout;
  for (const StagePlan& stage : plan.stages) {
    auto& devices = layout.emplace_back();
    for (const Share& share : stage.shares) devices.push_back(share.device.value());
  }
  return layout;
}
using Layout = std::vector<std::vector<std::uint32_t>>;

std::vector<std::uint32_t> blocks_of(const Plan& plan) {
  std::vector<std::uint32_t> counts;
  for (const StagePlan& s : plan.stages) counts.push_back(s.last_block - s.first_block + 1);
  return counts;
}

const Group& group_of(const Plan& plan, GroupKind kind, std::size_t nth = 0) {
  for (const Group& group : plan.groups) {
    if (group.kind == kind && nth-- == 0) return group;
  }
  ADD_FAILURE() << "no such group";
  return plan.groups.front();
}

constexpr JobShape kJob{8, 1, 0};

Result<Plan> plan_two(PlanOptions options, std::uint32_t blocks = 6, JobShape job = kJob) {
  return plan(two_clusters(), small_model(blocks), job, options);
}

void expect_error(const Result<Plan>& result, const ::testing::Matcher<std::string>& message) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(result.error().message(), message);
}

TEST(Holmes, StagesAreClusters) {
  const auto result = plan_two({});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(layout_of(*result), (Layout{{0, 1}, {2, 3}}));
  EXPECT_EQ(blocks_of(*result), (std::vector<std::uint32_t>{3, 3}));
  EXPECT_EQ(result->job.reduction_leaves, 8U);
  EXPECT_EQ(result->stages[0].shares[1].leaves, (LeafRange{4, 7}));
  EXPECT_EQ(result->owner(StageIndex(1), MicroBatch(3)), DeviceId(2));
  EXPECT_EQ(result->owner(StageIndex(1), MicroBatch(4)), DeviceId(3));
  EXPECT_TRUE(validate(*result, two_clusters(), 6));
}

TEST(Holmes, GradientsStayOnTheClustersFabric) {
  const auto result = plan_two({});
  ASSERT_TRUE(result);
  const std::vector<FabricId> ib{FabricId(0), FabricId(2)};
  const std::vector<FabricId> roce{FabricId(1), FabricId(2)};
  const std::vector<FabricId> ethernet{FabricId(2)};
  EXPECT_EQ(group_of(*result, GroupKind::kData, 0).paths, ib);
  EXPECT_EQ(group_of(*result, GroupKind::kData, 1).paths, roce);
  EXPECT_THAT(
      group_of(*result, GroupKind::kData, 0).reason,
      AllOf(HasSubstr("ib-a (infiniband, 2 Gbit/s, 20 us)"), HasSubstr("next is ethernet")));
  EXPECT_EQ(group_of(*result, GroupKind::kTied).paths, ethernet);
  EXPECT_EQ(group_of(*result, GroupKind::kTied).devices.size(), 4U);
  EXPECT_EQ(group_of(*result, GroupKind::kVote).paths, ethernet);
  EXPECT_EQ(group_of(*result, GroupKind::kVote).devices, result->members());
  ASSERT_EQ(result->edges.size(), 1U);
  EXPECT_EQ(result->edges[0].paths, ethernet);
  EXPECT_THAT(result->edges[0].reason, HasSubstr("joins clusters a, b"));
}

TEST(Holmes, BlocksFollowDeclaredSpeed) {
  Cluster cluster = two_clusters();
  for (const std::size_t host : {0, 1}) cluster.hosts[host].devices[0].tflops = 197;
  for (const std::size_t host : {2, 3}) cluster.hosts[host].devices[0].tflops = 160;
  const auto blocks = [&](std::uint32_t count, double alpha) {
    PlanOptions options;
    options.alpha = alpha;
    return blocks_of(*plan(cluster, small_model(count), kJob, options));
  };
  EXPECT_EQ(blocks(30, 1), (std::vector<std::uint32_t>{16, 14}));
  EXPECT_EQ(blocks(48, 1), (std::vector<std::uint32_t>{26, 22}));
  EXPECT_EQ(blocks(30, 1.05), (std::vector<std::uint32_t>{17, 13}));
}

TEST(Holmes, MoreStagesThanClusters) {
  const auto result = plan_two({.pipeline = 4});
  ASSERT_TRUE(result);
  EXPECT_EQ(layout_of(*result), (Layout{{0}, {1}, {2}, {3}}));
  EXPECT_EQ(result->edges[0].paths.front(), FabricId(0));
  EXPECT_EQ(result->edges[1].paths.front(), FabricId(2));
  EXPECT_EQ(result->edges[2].paths.front(), FabricId(1));
  const auto three = plan_two({.pipeline = 3});
  ASSERT_TRUE(three);
  EXPECT_EQ(layout_of(*three), (Layout{{0}, {1}, {2, 3}}));
  // Stage 2 has two devices, half the leaves each: it is twice as fast.
  EXPECT_EQ(blocks_of(*three), (std::vector<std::uint32_t>{2, 1, 3}));
}

TEST(Holmes, FewerStagesThanClustersMerges) {
  const auto result = plan_two({.pipeline = 1});
  ASSERT_TRUE(result);
  EXPECT_EQ(layout_of(*result), (Layout{{0, 1, 2, 3}}));
  const Group& data = group_of(*result, GroupKind::kData);
  EXPECT_EQ(data.paths, std::vector<FabricId>{FabricId(2)});
  EXPECT_THAT(data.reason, HasSubstr("the only fabric common to its 4 hosts; joins clusters a, b"));
  EXPECT_TRUE(result->edges.empty());
  EXPECT_EQ(result->groups.size(), 2U);  // data and vote; nothing is tied across stages
}

TEST(Holmes, MergesNeighboursOnTheFastestFabric) {
  Cluster cluster = two_clusters();
  // b and a third cluster c share b's RoCE: they merge, a stays alone.
  for (const std::string name : {"c0", "c1"}) {
    Host host = cluster.hosts[2];
    host.name = name;
    host.cluster = "c";
    cluster.hosts.push_back(host);
  }
  const auto result = plan(cluster, small_model(6), kJob, {.pipeline = 2});
  ASSERT_TRUE(result);
  EXPECT_EQ(layout_of(*result), (Layout{{0, 1}, {2, 3, 4, 5}}));
  EXPECT_EQ(group_of(*result, GroupKind::kData, 1).paths.front(), FabricId(1));
  EXPECT_EQ(blocks_of(*result), (std::vector<std::uint32_t>{2, 4}));
}

TEST(Holmes, FindsClustersThatNobodyNamed) {
  Cluster cluster = two_clusters();
  for (Host& host : cluster.hosts) host.cluster.clear();
  std::swap(cluster.hosts[1], cluster.hosts[2]);
  const auto result = plan(cluster, small_model(6), kJob, {});
  ASSERT_TRUE(result);
  EXPECT_EQ(layout_of(*result), (Layout{{0, 2}, {1, 3}}));
}

TEST(Holmes, OneHostNeedsNoNetwork) {
  Cluster cluster;
  cluster.hosts.push_back({"solo", "", "", {Device{}, Device{}}, {}});
  const auto result = plan(cluster, small_model(6), kJob, {.pipeline = 2});
  ASSERT_TRUE(result) << result.error().message();
  for (const Group& group : result->groups) EXPECT_TRUE(group.paths.empty());
  EXPECT_TRUE(result->edges[0].paths.empty());
  EXPECT_TRUE(validate(*result, cluster, 6));
}

TEST(Holmes, DataDegreeLeavesDevicesUnused) {
  const auto result = plan_two({.data = 1});
  ASSERT_TRUE(result);
  EXPECT_EQ(layout_of(*result), (Layout{{0}, {2}}));
  EXPECT_THAT(explain(*result, two_clusters()), HasSubstr("unused: a1, since the plan has"));
  expect_error(plan_two({.data = 3}), HasSubstr("stage 0 has only 2 devices"));
}

TEST(Megatron, RankOrderAndEqualBlocks) {
  Cluster cluster = two_clusters();
  cluster.hosts[0].devices[0].tflops = 5;
  const PlanOptions options{.strategy = Strategy::kMegatron};
  const auto result = plan(cluster, small_model(7), kJob, options);
  ASSERT_TRUE(result);
  EXPECT_EQ(layout_of(*result), (Layout{{0, 1}, {2, 3}}));
  EXPECT_EQ(blocks_of(*result), (std::vector<std::uint32_t>{4, 3}));
  EXPECT_TRUE(validate(*result, cluster, 7));
}

TEST(Megatron, IgnoresClusters) {
  Cluster cluster = two_clusters();
  std::swap(cluster.hosts[1], cluster.hosts[2]);  // a0 b0 a1 b1
  const auto result = plan(cluster, small_model(6), kJob, {.strategy = Strategy::kMegatron});
  ASSERT_TRUE(result);
  EXPECT_EQ(layout_of(*result), (Layout{{0, 1}, {2, 3}}));
  EXPECT_EQ(group_of(*result, GroupKind::kData, 0).paths, std::vector<FabricId>{FabricId(2)});
  // Holmes keeps data groups within a0 a1 and b0 b1.
  EXPECT_EQ(layout_of(*plan(cluster, small_model(6), kJob, {})), (Layout{{0, 2}, {1, 3}}));
}

TEST(Megatron, DegreesMustFit) {
  const auto with = [](std::uint32_t pipeline, std::uint32_t data) {
    return plan_two({.strategy = Strategy::kMegatron, .pipeline = pipeline, .data = data});
  };
  expect_error(with(3, 0), AllOf(HasSubstr("4 devices cannot be dealt equally to 3 stages"),
                                 HasSubstr("one of 1, 2, 4")));
  expect_error(with(2, 3), HasSubstr("need 6 devices, but the cluster has 4"));
  EXPECT_EQ(layout_of(*with(3, 1)), (Layout{{0}, {1}, {2}}));
}

TEST(Plan, RefusesWhatDoesNotFit) {
  expect_error(plan_two({.pipeline = 7}), HasSubstr("7 stages, but model.layers = 6"));
  expect_error(plan_two({}, 1), HasSubstr("2 stages, but model.layers = 1"));
  expect_error(plan_two({.pipeline = 5}), HasSubstr("only 4 devices"));
  expect_error(plan_two({}, 0), HasSubstr("model.layers = 0"));
  expect_error(plan_two({.alpha = -1}), HasSubstr("parallel.alpha = -1"));
  expect_error(plan_two({}, 6, {9, 2, 0}), HasSubstr("train.batch = 9 must be a multiple"));
  expect_error(plan_two({}, 6, {0, 0, 0}), HasSubstr("train.batch = 0"));
  expect_error(plan_two({}, 6, {12, 1, 3}), HasSubstr("must be a power of two"));
  expect_error(plan_two({}, 6, {12, 1, 8}), HasSubstr("must divide the 12 micro-batches"));
  expect_error(plan_two({.pipeline = 1}, 6, {2, 1, 2}),
               AllOf(HasSubstr("4 replicas"), HasSubstr("set parallel.data to at most 2")));
  expect_error(plan(Cluster{}, small_model(6), kJob, {}), HasSubstr("no hosts"));
}

TEST(Plan, NamesHostsWithoutACommonFabric) {
  Cluster cluster = two_clusters();
  cluster.hosts[3].nics.pop_back();  // b1 has RoCE only
  expect_error(plan(cluster, small_model(6), kJob, {}),
               AllOf(HasSubstr("hosts a0 and b1 share no fabric"),
                     HasSubstr("a0 has fast0 on ib-a, eth0 on ethernet"),
                     HasSubstr("b1 has fast0 on roce-b")));
  cluster.hosts[3].nics.clear();
  expect_error(
      plan(cluster, small_model(6), kJob, {}),
      AllOf(HasSubstr("data group of stage 1: hosts b0 and b1"), HasSubstr("b1 has no NIC")));
}

TEST(Plan, NamesHostsWithoutAFabricForAll) {
  // Each pair shares a fabric, but no fabric has all three.
  Cluster cluster;
  cluster.fabrics = {{"x", NicKind::kEthernet, 1, 1},
                     {"y", NicKind::kEthernet, 1, 1},
                     {"z", NicKind::kEthernet, 1, 1}};
  const auto add = [&](const char* name, std::uint32_t one, std::uint32_t two) {
    cluster.hosts.push_back({name, "c", "", {Device{}}, {}});
    cluster.hosts.back().nics = {{"n0", FabricId(one), 1, 1}, {"n1", FabricId(two), 1, 1}};
  };
  add("h0", 0, 1);
  add("h1", 1, 2);
  add("h2", 0, 2);
  expect_error(plan(cluster, small_model(6), kJob, {}),
               HasSubstr("hosts h0 and h1 share no fabric that all 3 hosts of the group are on"));
}

TEST(Plan, LoopbackStaysOnItsMachine) {
  Cluster cluster;
  cluster.fabrics = {{"lo", NicKind::kLoopback, 10, 1}};
  for (const char* name : {"h0", "h1"}) {
    cluster.hosts.push_back({name, "c", "", {Device{}}, {{"lo0", FabricId(0), 10, 1}}});
  }
  EXPECT_TRUE(plan(cluster, small_model(6), kJob, {}));
  cluster.hosts[1].address = "10.0.0.2";
  expect_error(plan(cluster, small_model(6), kJob, {}), HasSubstr("share no fabric"));
}

TEST(Plan, DefaultLeaves) {
  const auto leaves = [](std::uint32_t batch, std::uint32_t micro_batch) {
    return default_reduction_leaves({batch, micro_batch, 0});
  };
  EXPECT_EQ(leaves(8, 1), 8U);
  EXPECT_EQ(leaves(64, 1), 8U);
  EXPECT_EQ(leaves(12, 1), 4U);
  EXPECT_EQ(leaves(12, 4), 1U);
}

}  // namespace
}  // namespace holmes::partition
