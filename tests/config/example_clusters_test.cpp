// Goal: every cluster file among the examples is read, written back and planned, and the odd ones
// do what their first line says. Method: one job for all of them, by both strategies.
#include <algorithm>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holmes/actors/job_config.hpp"

namespace holmes::actors {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const std::filesystem::path kClusters = std::filesystem::path(HOLMES_EXAMPLES) / "clusters";
constexpr partition::JobShape kJob{768, 4, 64};
const partition::ModelCost kModel{30, 1e12, 1e9, 5e12, 1'000'000, 2'000'000, 2'000'000, 1 << 20};

std::vector<std::filesystem::path> files() {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(kClusters)) {
    if (entry.path().extension() == ".toml") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

partition::Cluster load(const std::string& name) {
  auto cluster = load_cluster(kClusters / (name + ".toml"));
  EXPECT_TRUE(cluster) << cluster.error().message();
  return cluster ? *cluster : partition::Cluster{};
}

partition::Plan plan_for(const std::string& name, partition::PlanOptions options = {}) {
  auto plan = partition::plan(load(name), kModel, kJob, options);
  EXPECT_TRUE(plan) << name << ": " << plan.error().message();
  return plan ? *plan : partition::Plan{};
}

/// The name of the fabric on which the data group of `stage` begins.
std::string data_fabric(const std::string& name, std::size_t stage,
                        partition::PlanOptions options = {}) {
  const auto plan = plan_for(name, options);
  const auto cluster = load(name);
  return cluster.fabrics.at(plan.groups.at(stage).paths.at(0).index()).name;
}

std::vector<std::uint32_t> blocks(const partition::Plan& plan) {
  std::vector<std::uint32_t> counts;
  for (const auto& stage : plan.stages) counts.push_back(stage.last_block - stage.first_block + 1);
  return counts;
}

TEST(ExampleClusters, AreReadWrittenAndPlanned) {
  int odd = 0;
  for (const auto& file : files()) {
    SCOPED_TRACE(file.filename());
    std::string first;
    std::getline(std::ifstream(file) >> std::ws, first);
    EXPECT_TRUE(first.starts_with("# ")) << "the first line says what the file is";
    const bool is_odd = file.filename().string().starts_with("odd-");
    EXPECT_EQ(is_odd, first.starts_with("# Odd: "));
    odd += is_odd ? 1 : 0;
    const auto cluster = load_cluster(file);
    ASSERT_TRUE(cluster) << cluster.error().message();
    const auto again = parse_cluster(to_toml(*cluster), "again");
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_EQ(*again, *cluster);
    const auto plan = partition::plan(*cluster, kModel, kJob, {});
    ASSERT_TRUE(plan) << plan.error().message();
    EXPECT_TRUE(partition::validate(*plan, *cluster, kModel.blocks));
    EXPECT_THAT(partition::explain(*plan, *cluster), HasSubstr("because"));
  }
  EXPECT_GE(odd, 10);
}

TEST(ExampleClusters, PaperSplitsAsPublished) {
  for (const char* name : {"paper-4x8", "paper-6x8", "paper-8x8", "paper-12x8"}) {
    SCOPED_TRACE(name);
    const auto plan = plan_for(name);
    EXPECT_EQ(blocks(plan), (std::vector<std::uint32_t>{16, 14}));
    EXPECT_EQ(data_fabric(name, 0), "ib-a");
    EXPECT_EQ(data_fabric(name, 1), "roce-b");
    EXPECT_EQ(plan.edges.at(0).paths, std::vector<FabricId>{FabricId(2)});
    partition::ModelCost large = kModel;
    large.blocks = 48;
    const auto tensor = partition::plan(load(name), large, kJob, {.tensor = 8});
    ASSERT_TRUE(tensor) << tensor.error().message();
    EXPECT_EQ(blocks(*tensor), (std::vector<std::uint32_t>{26, 22}));
  }
}

TEST(ExampleClusters, HomogeneousOnesTakeTheirFabric) {
  for (const std::string hosts : {"4", "6", "8"}) {
    EXPECT_EQ(data_fabric("paper-" + hosts + "x8-infiniband", 0), "ib-a");
    EXPECT_EQ(data_fabric("paper-" + hosts + "x8-roce", 0), "roce-a");
    EXPECT_EQ(data_fabric("paper-" + hosts + "x8-ethernet", 0, {.pipeline = 2}), "ethernet");
  }
  EXPECT_THAT(plan_for("paper-6x8-three-clusters").stages, SizeIs(3));
}

TEST(ExampleClusters, OddOnesFallBackToWhatAllHave) {
  EXPECT_EQ(data_fabric("odd-two-roce-versions", 0), "ethernet");
  EXPECT_EQ(data_fabric("odd-two-roce-versions", 0, {.pipeline = 2}), "roce");
  EXPECT_EQ(data_fabric("odd-two-subnets", 0), "ethernet");
  EXPECT_EQ(data_fabric("odd-two-subnets", 1, {.pipeline = 2}), "ib");
  EXPECT_EQ(data_fabric("odd-dead-port", 0), "ethernet");
  EXPECT_EQ(data_fabric("odd-unequal-rails", 0), "ib");
  // The thin trunk makes Ethernet the faster way between the clusters, not within them.
  EXPECT_EQ(data_fabric("odd-thin-trunk", 0), "ib");
  EXPECT_EQ(plan_for("odd-thin-trunk").edges.at(0).paths.front(), FabricId(1));
  EXPECT_EQ(data_fabric("odd-thin-trunk", 0, {.pipeline = 1}), "ethernet");
}

TEST(ExampleClusters, WhatKeepsTheFasterFabricFromUseIsSaid) {
  const auto reason = [](const std::string& name) { return plan_for(name).groups.at(0).reason; };
  EXPECT_THAT(reason("odd-dead-port"),
              HasSubstr("not the faster ib (infiniband): the port of ib0 of host lame is down"));
  EXPECT_THAT(reason("odd-two-subnets"),
              AllOf(HasSubstr("not the faster ib (infiniband): hosts "), HasSubstr("has subnet ")));
  EXPECT_THAT(reason("odd-two-roce-versions"),
              AllOf(HasSubstr("not the faster roce (roce): hosts "), HasSubstr("has GID kind ")));
  EXPECT_THAT(reason("odd-thin-trunk"), ::testing::Not(HasSubstr("not the faster")));
}

TEST(ExampleClusters, DevicesAreNamedWithinTheirHostAndInRanges) {
  const auto text = partition::explain(plan_for("paper-6x8"), load("paper-6x8"));
  EXPECT_THAT(text, HasSubstr("a0/0-7 (8 devices of "));
  EXPECT_THAT(text, HasSubstr("data group a0/0-7, a1/0-7"));
  for (std::size_t start = 0, end = 0; end != std::string::npos; start = end + 1) {
    end = text.find('\n', start);
    EXPECT_LT(text.substr(start, end - start).size(), 400U);
  }
}

TEST(ExampleClusters, TwoSitesTalkThroughTheirLink) {
  const auto plan = plan_for("odd-two-sites");
  EXPECT_EQ(data_fabric("odd-two-sites", 0), "eth-berlin");
  EXPECT_EQ(data_fabric("odd-two-sites", 1), "eth-tokyo");
  EXPECT_THAT(plan.edges.at(0).reason, HasSubstr("1 Gbit/s, 25040 us"));
  EXPECT_THAT(plan.edges.at(0).reason,
              HasSubstr("and, over [[link]] eth-berlin - eth-tokyo, eth-tokyo: the only way that "
                        "joins its"));
}

TEST(ExampleClusters, ShuffledRanksAreSortedIntoClusters) {
  const auto plan = plan_for("odd-shuffled-ranks");
  EXPECT_EQ(data_fabric("odd-shuffled-ranks", 0), "ib-a");
  EXPECT_EQ(data_fabric("odd-shuffled-ranks", 1), "roce-b");
  EXPECT_THAT(plan.stages.at(0).shares, SizeIs(6));
}

TEST(ExampleClusters, FiveClustersMergeOnTheirFabricFirst) {
  EXPECT_EQ(data_fabric("odd-five-clusters", 0, {.pipeline = 3}), "ib");
  EXPECT_THAT(plan_for("odd-five-clusters", {.pipeline = 3}).stages.at(0).shares, SizeIs(12));
}

}  // namespace
}  // namespace holmes::actors
