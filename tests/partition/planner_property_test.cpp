// Goal: what must hold of every plan of any cluster. Method: thousands of random clusters, models
// and options; a refused one must be refused for a reason that the test can see too.
#include <algorithm>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "clusters.hpp"
#include "holmes/partition/plan.hpp"
#include "holmes/partition/plan_json.hpp"

namespace holmes::partition {
namespace {

struct Case {
  Cluster cluster;
  ModelCost model;
  JobShape job;
  PlanOptions options;
};

Case random_case(Random& random) {
  Case c;
  c.cluster = random_cluster(random);
  c.model = small_model(static_cast<std::uint32_t>(1 + random.below(20)));
  const std::uint32_t leaves = 1U << random.below(6);
  c.job = {leaves * static_cast<std::uint32_t>(1 + random.below(3)), 1,
           random.chance(0.5) ? leaves : 0};
  c.options.strategy = random.chance(0.3) ? Strategy::kMegatron : Strategy::kHolmes;
  if (random.chance(0.5)) c.options.pipeline = static_cast<std::uint32_t>(1 + random.below(8));
  if (random.chance(0.3)) c.options.data = static_cast<std::uint32_t>(1 + random.below(4));
  c.options.alpha = 0.8 + 0.4 * random.uniform();
  return c;
}

Result<Plan> plan_case(const Case& c) {
  return plan(c.cluster, c.model, c.job, c.options);
}

void expect_blocks_once(const Plan& plan, std::uint32_t blocks) {
  std::vector<int> seen(blocks, 0);
  for (const StagePlan& stage : plan.stages) {
    for (auto b = stage.first_block; b <= stage.last_block; ++b) ++seen.at(b);
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), blocks);
}

void expect_devices_once(const Case& c, const Plan& plan) {
  const auto members = plan.members();
  const std::set<DeviceId> unique(members.begin(), members.end());
  EXPECT_EQ(unique.size(), members.size());
  if (c.options.data == 0) {
    EXPECT_EQ(members.size(), c.cluster.device_count());
  } else {
    EXPECT_EQ(members.size(), c.options.data * plan.stages.size());
  }
  const std::string text = explain(plan, c.cluster);
  std::size_t unused = 0;
  for (auto at = text.find("unused: "); at != std::string::npos;
       at = text.find("unused: ", at + 1)) {
    ++unused;
  }
  EXPECT_EQ(unused, c.cluster.device_count() - members.size());
}

void expect_micro_batches_once(const Plan& plan) {
  for (std::uint32_t s = 0; s < plan.stages.size(); ++s) {
    std::vector<int> seen(plan.job.micro_batch_count(), 0);
    for (const Share& share : plan.stages[s].shares) {
      for (const MicroBatch k : plan.micro_batches(StageIndex(s), share.device)) {
        ++seen.at(k.index());
        EXPECT_EQ(plan.owner(StageIndex(s), k), share.device);
      }
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), plan.job.micro_batch_count());
  }
}

TEST(PlanProperties, HoldForRandomClusters) {
  Random random(5);
  int planned = 0;
  for (int round = 0; round < 3000; ++round) {
    const Case c = random_case(random);
    const auto result = plan_case(c);
    if (!result) {
      EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
      EXPECT_FALSE(result.error().message().empty());
      continue;
    }
    ++planned;
    const Status valid = validate(*result, c.cluster, c.model.blocks);
    ASSERT_TRUE(valid) << valid.error().message();
    EXPECT_EQ(*result, *plan_case(c));
    expect_blocks_once(*result, c.model.blocks);
    expect_devices_once(c, *result);
    expect_micro_batches_once(*result);
    EXPECT_FALSE(to_json(*result, c.cluster).empty());
  }
  EXPECT_GT(planned, 1000);
}

TEST(PlanProperties, WithDefaultsOnlyKnownReasonsRefuse) {
  // One stage a cluster, Ethernet everywhere: what can fail is too few blocks or leaves.
  Random random(6);
  int planned = 0;
  for (int round = 0; round < 2000; ++round) {
    Case c = random_case(random);
    c.options = {};
    const auto result = plan_case(c);
    std::map<std::string, std::size_t> devices;
    for (const Host& host : c.cluster.hosts) devices[host.cluster] += host.devices.size();
    const std::uint32_t leaves =
        c.job.reduction_leaves == 0 ? default_reduction_leaves(c.job) : c.job.reduction_leaves;
    const bool fits = devices.size() <= c.model.blocks &&
                      std::all_of(devices.begin(), devices.end(),
                                  [&](const auto& d) { return d.second <= leaves; });
    EXPECT_EQ(result.has_value(), fits) << (result ? "" : result.error().message());
    planned += result.has_value() ? 1 : 0;
  }
  EXPECT_GT(planned, 300);
}

TEST(PlanProperties, DataGroupsKeepToAFastFabricWhereAllHaveIt) {
  Random random(7);
  int checked = 0;
  for (int round = 0; round < 2000; ++round) {
    Case c = random_case(random);
    c.options = {};
    const auto result = plan_case(c);
    if (!result) continue;
    for (const Group& group : result->groups) {
      if (group.kind != GroupKind::kData || group.paths.empty()) continue;
      // The best path is at least as fast as any other fabric that all hosts of the group have.
      for (std::uint32_t f = 0; f < c.cluster.fabrics.size(); ++f) {
        const bool common =
            std::all_of(group.devices.begin(), group.devices.end(), [&](DeviceId device) {
              return c.cluster.nic_on(c.cluster.host_of(device), FabricId(f)).has_value();
            });
        if (!common) continue;
        EXPECT_GE(c.cluster.fabrics[group.paths.front().index()].gbit_s,
                  c.cluster.fabrics[f].gbit_s);
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 500);
}

TEST(PlanProperties, LargeClustersArePlanned) {
  Cluster cluster;
  cluster.fabrics = {{"ethernet", NicKind::kEthernet, 25, 50}};
  for (std::uint32_t c = 0; c < 64; ++c) {
    cluster.fabrics.push_back({"ib-" + std::to_string(c), NicKind::kInfiniBand, 200, 5});
    for (std::uint32_t h = 0; h < 20; ++h) {
      Host host{
          "h" + std::to_string(c) + "-" + std::to_string(h), "c" + std::to_string(c), "", {}, {}};
      host.devices.assign(8, Device{});
      host.nics = {{"ib0", FabricId(c + 1), 200, 5}, {"eth0", FabricId(0), 25, 50}};
      cluster.hosts.push_back(host);
    }
  }
  const auto result = plan(cluster, small_model(96), {1024, 1, 256}, {});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(result->stages.size(), 64U);
  EXPECT_TRUE(validate(*result, cluster, 96));
  EXPECT_EQ(result->groups.front().paths.front(), FabricId(1));
}

}  // namespace
}  // namespace holmes::partition
