// Goal: a plan that came over the wire is believed only when whole. Method: good plans with one
// field changed; random changes must be refused or leave a plan that still runs.
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clusters.hpp"
#include "holmes/partition/plan.hpp"
#include "holmes/partition/schedule.hpp"

namespace holmes::partition {
namespace {

using ::testing::HasSubstr;

Plan good_plan() {
  return *plan(two_clusters(), small_model(6), {8, 1, 0}, {});
}

TEST(ValidPlan, HasTiedGroupsExactlyWhereTheHeadIsTied) {
  ModelCost untied = small_model(6);
  untied.tied_head = false;
  const Plan with = good_plan();
  const Plan without = *plan(two_clusters(), untied, {8, 1, 0}, {});
  EXPECT_EQ(without.groups.size() + 1, with.groups.size());
  EXPECT_TRUE(validate(with, two_clusters(), 6, true));
  EXPECT_FALSE(validate(with, two_clusters(), 6, false));
  EXPECT_TRUE(validate(without, two_clusters(), 6, false));
  const Status status = validate(without, two_clusters(), 6, true);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message(), HasSubstr("its tied groups"));
}

struct Damage {
  const char* message;
  std::function<void(Plan&)> apply;
};
class DamagedPlan : public ::testing::TestWithParam<Damage> {};

TEST_P(DamagedPlan, IsRefused) {
  Plan plan = good_plan();
  ASSERT_TRUE(validate(plan, two_clusters(), 6));
  GetParam().apply(plan);
  const Status status = validate(plan, two_clusters(), 6);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message(), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Fields, DamagedPlan,
    ::testing::Values(
        Damage{"must be a multiple", [](Plan& p) { p.job.micro_batch = 3; }},
        Damage{"must be a multiple", [](Plan& p) { p.job.micro_batch = 0; }},
        Damage{"power of two", [](Plan& p) { p.job.reduction_leaves = 6; }},
        Damage{"not resolved", [](Plan& p) { p.job.reduction_leaves = 0; }},
        Damage{"at most 1024",
               [](Plan& p) {
                 p.job = {4096, 1, 2048};
               }},
        Damage{"must begin at 3", [](Plan& p) { p.stages[1].first_block = 4; }},
        Damage{"end below 6", [](Plan& p) { p.stages[1].last_block = 6; }},
        Damage{"blocks 5 to 5 are on no stage", [](Plan& p) { p.stages[1].last_block = 4; }},
        Damage{"must begin at 0", [](Plan& p) { p.stages[0].last_block = ~std::uint32_t{0}; }},
        Damage{"names device 4 of 4", [](Plan& p) { p.stages[0].shares[0].device = DeviceId(4); }},
        Damage{"a second time", [](Plan& p) { p.stages[1].shares[0].device = DeviceId(0); }},
        Damage{"do not follow leaf 4", [](Plan& p) { p.stages[0].shares[1].leaves.first = 5; }},
        Damage{"do not follow leaf 4", [](Plan& p) { p.stages[0].shares[1].leaves.last = 8; }},
        Damage{"nobody computes the leaves from 4", [](Plan& p) { p.stages[0].shares.pop_back(); }},
        Damage{"nobody computes the leaves from 0", [](Plan& p) { p.stages[0].shares.clear(); }},
        Damage{"its data groups", [](Plan& p) { p.groups.erase(p.groups.begin()); }},
        Damage{"its vote groups", [](Plan& p) { p.groups.pop_back(); }},
        Damage{"its vote groups", [](Plan& p) { p.groups.push_back(p.groups.back()); }},
        Damage{"its tied groups", [](Plan& p) { p.groups[2].devices.pop_back(); }},
        Damage{"its data groups", [](Plan& p) { p.groups[0].devices[0] = DeviceId(4000000000); }},
        Damage{"no path", [](Plan& p) { p.groups[0].paths.clear(); }},
        Damage{"unknown or named twice", [](Plan& p) { p.groups[0].paths[1] = FabricId(0); }},
        Damage{"unknown or named twice", [](Plan& p) { p.groups[0].paths[0] = FabricId(99); }},
        Damage{"does not join", [](Plan& p) { p.groups[0].paths[0] = FabricId(1); }},
        Damage{"2 stages with 0 edges", [](Plan& p) { p.edges.clear(); }},
        Damage{"must go from stage 0", [](Plan& p) { p.edges[0].to_stage = StageIndex(0); }},
        Damage{"edge 0 spans hosts", [](Plan& p) { p.edges[0].paths.clear(); }},
        Damage{"does not join", [](Plan& p) { p.edges[0].paths = {FabricId(0)}; }},
        Damage{"groups or edges without a stage", [](Plan& p) { p.stages.clear(); }},
        Damage{"unknown strategy", [](Plan& p) { p.strategy = static_cast<Strategy>(9); }},
        Damage{"unknown kind of group", [](Plan& p) {
                 p.groups.push_back(p.groups.back());
                 p.groups.back().kind = static_cast<GroupKind>(7);
               }}));

TEST(ValidatePlan, EmptyPlanIsAStop) {
  EXPECT_TRUE(validate(Plan{}, two_clusters(), 6));
}

TEST(ValidatePlan, RandomDamageIsRefusedOrHarmless) {
  Random random(8);
  int refused = 0;
  for (int round = 0; round < 5000; ++round) {
    Plan plan = good_plan();
    const auto small = [&] { return static_cast<std::uint32_t>(random.below(10)); };
    for (std::uint64_t i = 0; i <= random.below(3); ++i) {
      StagePlan& stage = plan.stages[random.below(2)];
      Group& group = plan.groups[random.below(plan.groups.size())];
      switch (random.below(6)) {
        case 0:
          stage.last_block = small();
          break;
        case 1:
          stage.shares[random.below(2)] = {DeviceId(small()), {small(), small()}};
          break;
        case 2:
          plan.job = {small(), small(), small()};
          break;
        case 3:
          group.devices[random.below(2)] = DeviceId(small());
          break;
        case 4:
          group.paths = {FabricId(small()), FabricId(small())};
          break;
        default:
          plan.edges[0] = {StageIndex(small()), StageIndex(small()), {FabricId(small())}, ""};
      }
    }
    if (!validate(plan, two_clusters(), 6)) {
      ++refused;
      continue;
    }
    // Whoever is believed must be runnable.
    for (std::uint32_t s = 0; s < 2; ++s) {
      for (const Share& share : plan.stages[s].shares) {
        EXPECT_FALSE(schedule(plan, StageIndex(s), share.device).empty());
      }
    }
  }
  EXPECT_GT(refused, 4000);
}

}  // namespace
}  // namespace holmes::partition
