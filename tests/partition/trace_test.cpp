// Goal: the timeline is JSON that viewers read: slices of a track do not overlap, flows have both
// ends, every pass is there; the picture has a box for every pass that it shows. Method: simulated
// steps of random plans, read back.
#include "holmes/partition/trace.hpp"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "clusters.hpp"

namespace holmes::partition {
namespace {

using testing::HasSubstr;

ModelCost model(std::uint32_t blocks) {
  ModelCost model = small_model(blocks);
  model.block_flops = 1e9;
  model.edge_bytes = 1 << 20;
  model.block_parameters = 1 << 18;
  return model;
}

TimelineOptions recorded() {
  TimelineOptions options;
  options.record = true;
  return options;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

TEST(ChromeTrace, TracksHaveNoOverlapAndFlowsHaveBothEnds) {
  Random random(5);
  int compared = 0;
  for (int round = 0; round < 40; ++round) {
    const Cluster cluster = random_cluster(random);
    auto options = recorded();
    options.search.cost.overlapped_transfers = random.chance(0.5);
    const auto timeline = run_timeline(cluster, model(8), {16, 1, 16}, options);
    if (!timeline) continue;
    ++compared;
    const auto trace = nlohmann::json::parse(to_chrome_trace(*timeline));
    std::map<std::pair<int, int>, double> ends;
    std::map<std::uint64_t, int> flows;
    std::size_t passes = 0;
    for (const auto& event : trace["traceEvents"]) {
      const std::string phase = event["ph"];
      if (phase == "s") ++flows[event["id"]];
      if (phase == "f") --flows[event["id"]];
      if (phase != "X") continue;
      if (event["args"].contains("chunk") && event["name"] != "optimizer") ++passes;
      double& end = ends[{event["pid"], event["tid"]}];
      EXPECT_GE(event["ts"].get<double>(), end - 0.002) << event.dump();
      end = event["ts"].get<double>() + event["dur"].get<double>();
    }
    for (const auto& [id, open] : flows) EXPECT_EQ(open, 0);
    const auto& plan = timeline->segments[0].planned.plan;
    EXPECT_EQ(passes, 2 * plan.stages.size() * 16 * 2);  // steps, passes
  }
  EXPECT_GT(compared, 20);
}

TEST(ChromeTrace, NamesHostsDevicesAndNics) {
  const auto timeline = run_timeline(two_clusters(), model(4), {8, 1, 8}, recorded());
  ASSERT_TRUE(timeline);
  const std::string trace = to_chrome_trace(*timeline);
  for (const char* name : {"\"a0\"", "\"b1\"", "\"device 3\"", "\"ethernet out\"", "\"roce-b in\"",
                           "stage 1 reduce-scatter", "\"forward 7\""}) {
    EXPECT_THAT(trace, HasSubstr(name));
  }
}

TEST(ChromeTrace, EndsAHostsLifeWhereItDied) {
  const Cluster cluster = two_clusters();
  auto options = recorded();
  const auto even = run_timeline(cluster, model(4), {8, 1, 8}, options);
  ASSERT_TRUE(even);
  options.changes = {*parse_change("host a1 at 0 s dies", cluster)};
  options.changes[0].speed.at_s = even->commits_s[0] * 1.5;
  const auto timeline = run_timeline(cluster, model(4), {8, 1, 8}, options);
  ASSERT_TRUE(timeline);
  const auto trace = nlohmann::json::parse(to_chrome_trace(*timeline));
  const double died_us = options.changes[0].speed.at_s * 1e6;
  bool marked = false;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "i") marked = std::abs(event["ts"].get<double>() - died_us) < 1;
    if (event["ph"] != "X" || event["ts"].get<double>() > died_us) continue;
    EXPECT_LE(event["ts"].get<double>() + event["dur"].get<double>(), died_us + 0.01);
  }
  EXPECT_TRUE(marked);
}

TEST(Picture, HasABoxForEveryPassAndSaysWhatColoursMean) {
  const auto timeline = run_timeline(two_clusters(), model(4), {8, 1, 8}, recorded());
  ASSERT_TRUE(timeline);
  const std::string svg = to_svg(*timeline, {"<title & more>"});
  EXPECT_THAT(svg, testing::StartsWith("<svg"));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
  EXPECT_THAT(svg, HasSubstr("&lt;title &amp; more&gt;"));
  for (const char* word : {"forward", "backward", "optimizer", "reduce-scatter", "all-gather",
                           "stage 0", "stage 1", "blocks 0", "step 1 committed", "time"}) {
    EXPECT_THAT(svg, HasSubstr(word));
  }
  // Two steps of 8 micro-batches through 2 stages.
  EXPECT_EQ(count(svg, "<title>forward "), 32U);
  EXPECT_EQ(count(svg, "<title>backward "), 32U);
}

TEST(Picture, OfManyReplicasOneOfEachStageIsShown) {
  const auto timeline = run_timeline(two_clusters(), model(4), {8, 1, 8}, recorded());
  ASSERT_TRUE(timeline);
  const std::string svg = to_svg(*timeline, {"", 2});
  EXPECT_THAT(svg, HasSubstr("1 of 2"));
  EXPECT_EQ(count(svg, "<title>forward "), 16U);
}

}  // namespace
}  // namespace holmes::partition
