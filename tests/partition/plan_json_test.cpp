// Goal: the JSON and the text of a plan say what the plan says. Method: parse it again.
#include "holmes/partition/plan_json.hpp"

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clusters.hpp"

namespace holmes::partition {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

TEST(PlanJson, HasTheAgreedKeys) {
  const Cluster cluster = two_clusters();
  const auto result = plan(cluster, small_model(6), {8, 1, 4}, {});
  ASSERT_TRUE(result);
  const Json json = Json::parse(to_json(*result, cluster));
  EXPECT_EQ(json["strategy"], "holmes");
  EXPECT_EQ(json["schedule"], "1f1b");
  EXPECT_EQ(json["tensor"], 1);
  EXPECT_EQ(json["pipeline"], 2);
  EXPECT_EQ(json["data"], 2);
  EXPECT_EQ(json["reduction_leaves"], 4);
  EXPECT_EQ(json["micro_batches"], 8);
  ASSERT_EQ(json["stages"].size(), 2U);
  EXPECT_EQ(json["stages"][1]["layers"], Json({3, 5}));
  EXPECT_EQ(json["stages"][1]["devices"], Json({2, 3}));
  EXPECT_EQ(json["stages"][1]["shares"][1],
            Json({{"device", 3}, {"devices", {3}}, {"leaves", {2, 3}}}));
  EXPECT_EQ(json["groups"][0]["kind"], "data");
  EXPECT_EQ(json["groups"][0]["devices"], Json({0, 1}));
  EXPECT_EQ(json["groups"][0]["fabric"], "ib-a");
  EXPECT_EQ(json["groups"][0]["paths"], Json({"ib-a", "ethernet"}));
  EXPECT_EQ(json["edges"].size(), 1U);
  EXPECT_EQ(json["edges"][0]["from_stage"], 0);
  EXPECT_EQ(json["edges"][0]["to_stage"], 1);
  EXPECT_EQ(json["edges"][0]["fabric"], "ethernet");
  EXPECT_EQ(json["devices"][2]["host"], "b0");
  EXPECT_TRUE(json["unused"].empty());
}

TEST(PlanJson, OneHostHasNoFabric) {
  Cluster cluster;
  cluster.hosts.push_back({"solo", "", "", {Device{}, Device{}}, {}});
  const auto result = plan(cluster, small_model(6), {8, 1, 0}, {.data = 1});
  ASSERT_TRUE(result);
  const Json json = Json::parse(to_json(*result, cluster));
  EXPECT_TRUE(json["groups"][0]["fabric"].is_null());
  EXPECT_EQ(json["unused"][0]["device"], 1);
}

TEST(PlanJson, EmptyPlan) {
  const Json json = Json::parse(to_json(Plan{}, two_clusters()));
  EXPECT_EQ(json["pipeline"], 0);
}

TEST(Explain, SaysWhoAndWhy) {
  const Cluster cluster = two_clusters();
  const auto result = plan(cluster, small_model(6), {8, 1, 4}, {});
  ASSERT_TRUE(result);
  const std::string text = explain(*result, cluster);
  EXPECT_THAT(text, HasSubstr("stage 0: embedding, blocks 0-2 on a0 (0.1 TFLOPS, leaves 0-1), a1"));
  EXPECT_THAT(text, HasSubstr("edge 0 -> 1: ethernet\n"));
  EXPECT_THAT(text,
              HasSubstr("data group a0, a1: ib-a, else ethernet\n  because ib-a (infiniband"));
  EXPECT_THAT(explain(Plan{}, cluster), HasSubstr("nobody trains"));
}

}  // namespace
}  // namespace holmes::partition
