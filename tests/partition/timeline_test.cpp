// Goal: changes read as they are written, or say what is wrong; a slower fabric, link or host slows
// the steps from its time on; a death loses the step in progress and the rest goes on with a plan
// for what is left, or says why it cannot. Method: the demo's clusters with a model whose times can
// be followed by hand.
#include "holmes/partition/timeline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clusters.hpp"

namespace holmes::partition {
namespace {

using testing::HasSubstr;

/// A block's forward pass takes 1 s on a device of the demo; transfers take next to nothing.
ModelCost slow_model(std::uint32_t blocks) {
  ModelCost model = small_model(blocks);
  model.block_flops = 1e11;
  return model;
}

Timeline run(const Cluster& cluster, const TimelineOptions& options) {
  auto timeline = run_timeline(cluster, slow_model(4), {8, 1, 8}, options);
  EXPECT_TRUE(timeline) << (timeline ? "" : timeline.error().message());
  return *timeline;
}

Change change(const std::string& text, const Cluster& cluster) {
  const auto parsed = parse_change(text, cluster);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message());
  return *parsed;
}

TEST(ChangeText, ReadsWhatPeopleWrite) {
  Cluster cluster = two_clusters();
  cluster.links = {{"a", "b", 1, 1}};
  Change read = change("fabric roce-b at 40 s to 0.3", cluster);
  EXPECT_EQ(read.speed.what, SpeedChange::What::kFabric);
  EXPECT_EQ(read.speed.index, 1U);
  EXPECT_EQ(read.speed.at_s, 40);
  EXPECT_EQ(read.speed.factor, 0.3);
  EXPECT_FALSE(read.dies);
  read = change("  host  b0 at 1.5min  dies ", cluster);
  EXPECT_EQ(read.speed.what, SpeedChange::What::kHost);
  EXPECT_EQ(read.speed.index, 2U);
  EXPECT_EQ(read.speed.at_s, 90);
  EXPECT_TRUE(read.dies);
  read = change("link b a at 500ms to 2", cluster);
  EXPECT_EQ(read.speed.what, SpeedChange::What::kLink);
  EXPECT_EQ(read.speed.at_s, 0.5);
}

TEST(ChangeText, SaysWhatIsWrong) {
  const Cluster cluster = two_clusters();
  for (const auto& [text, what] : std::vector<std::pair<std::string, std::string>>{
           {"", "fabric, link, host"},
           {"cable x at 40 s to 1", "fabric, link, host"},
           {"fabric roce-c at 40 s to 1", "did you mean 'roce-b'"},
           {"link a b at 40 s to 1", "no [[link]]"},
           {"host a0 in 40 s dies", "'at'"},
           {"host a0 at 40 dies", "a time is"},
           {"host a0 at -4 s dies", "a time is"},
           {"host a0 at 4 s explodes", "'to' or 'dies'"},
           {"host a0 at 4 s to 0", "factor above 0"},
           {"host a0 at 4 s to nan", "factor above 0"},
           {"fabric ib-a at 4 s dies", "only hosts die"},
           {"host a0 at 4 s to 0.5 now", "left over"}}) {
    const auto parsed = parse_change(text, cluster);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message(), HasSubstr(what));
    EXPECT_THAT(parsed.error().message(), HasSubstr("change '"));
  }
}

TEST(Timeline, ASlowHostSlowsTheStepsFromThenOn) {
  const Cluster cluster = two_clusters();
  TimelineOptions options;
  options.steps = 6;
  const Timeline even = run(cluster, options);
  ASSERT_EQ(even.segments.size(), 1U);
  const double step_s = even.step_times_s()[3];
  options.changes = {change("host b1 at 0 s to 1", cluster)};
  options.changes.push_back(options.changes[0]);
  options.changes[1].speed.at_s = even.commits_s[2];
  options.changes[1].speed.factor = 0.5;
  const Timeline slowed = run(cluster, options);
  ASSERT_EQ(slowed.commits_s.size(), 6U);
  EXPECT_NEAR(slowed.step_times_s()[1], step_s, 0.01 * step_s);
  EXPECT_GT(slowed.step_times_s()[4], 1.5 * step_s);
}

TEST(Timeline, ADeathCostsTheStepInProgressAndTheRestGoesOn) {
  const Cluster cluster = two_clusters();
  TimelineOptions options;
  options.steps = 6;
  const Timeline even = run(cluster, options);
  const double middle_s = (even.commits_s[1] + even.commits_s[2]) / 2;
  options.recovery_s = 7;
  options.changes = {change("host a1 at 0 s dies", cluster)};
  options.changes[0].speed.at_s = middle_s;
  const Timeline broken = run(cluster, options);
  EXPECT_EQ(broken.stopped, "");
  ASSERT_EQ(broken.segments.size(), 2U);
  EXPECT_EQ(broken.segments[0].steps, 2U);
  EXPECT_THAT(broken.segments[0].ended_by, HasSubstr("host a1 died"));
  EXPECT_NEAR(broken.segments[0].lost_s, middle_s - even.commits_s[1], 1e-9);
  EXPECT_EQ(broken.segments[1].cluster.hosts.size(), 3U);
  EXPECT_NEAR(broken.segments[1].start_s, middle_s + 7, 1e-9);
  ASSERT_EQ(broken.commits_s.size(), 6U);
  EXPECT_GT(broken.step_times_s()[2], even.step_times_s()[2] + 7);
  EXPECT_GT(broken.step_times_s()[4], even.step_times_s()[4] * 1.05);
}

TEST(Timeline, ASpareHostThatDiesChangesNothing) {
  Cluster cluster = two_clusters();
  TimelineOptions options;
  options.steps = 4;
  options.search.plan.pipeline = 1;
  options.search.plan.data = 3;
  options.search.plan.strategy = Strategy::kMegatron;
  const Timeline even = run(cluster, options);
  const auto members = even.segments[0].planned.plan.members();
  ASSERT_EQ(members.size(), 3U);
  options.changes = {change("host b1 at 1 s dies", cluster)};
  EXPECT_EQ(run(cluster, options).commits_s, even.commits_s);
}

TEST(Timeline, SaysWhenNothingIsLeft) {
  Cluster cluster = two_clusters();
  cluster.hosts.resize(1);
  TimelineOptions options;
  options.steps = 3;
  options.changes = {change("host a0 at 1 s dies", cluster)};
  const Timeline timeline = run(cluster, options);
  EXPECT_TRUE(timeline.commits_s.empty());
  EXPECT_EQ(timeline.stopped, "no host is left");
}

TEST(Timeline, DegreesThatNoLongerDivideAreGivenUp) {
  const Cluster cluster = two_clusters();
  TimelineOptions options;
  options.steps = 3;
  options.search.plan.pipeline = 2;
  options.search.plan.data = 2;
  options.changes = {change("host b0 at 1 s dies", cluster)};
  const Timeline timeline = run(cluster, options);
  EXPECT_EQ(timeline.stopped, "");
  EXPECT_EQ(timeline.commits_s.size(), 3U);
}

TEST(Timeline, LinksGoWithTheirClustersAndAbsurdRecoveriesAreRefused) {
  Cluster cluster = two_clusters();
  cluster.hosts.erase(cluster.hosts.begin() + 3);
  cluster.links = {{"a", "b", 10, 1}};
  TimelineOptions options;
  options.steps = 3;
  options.changes = {change("host b0 at 1 s dies", cluster),
                     change("link a b at 2 s to 0.5", cluster)};
  EXPECT_EQ(run(cluster, options).stopped, "");
  options.recovery_s = -1;
  EXPECT_FALSE(run_timeline(cluster, slow_model(4), {8, 1, 8}, options));
}

}  // namespace
}  // namespace holmes::partition
