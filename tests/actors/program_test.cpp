// Goal: all devices agree, without asking, on what each computes and on whom each talks to.
// Method: programs of every device of several plans are put together and counted; the vote tree and
// the links of every host are compared from both ends.
#include "program.hpp"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "routes.hpp"

namespace holmes::actors {
namespace {

partition::Plan plan_of(const std::vector<std::vector<partition::LeafRange>>& stages) {
  partition::Plan plan;
  plan.job = {8, 1, 4};
  std::uint32_t device = 0;
  for (std::uint32_t s = 0; s < stages.size(); ++s) {
    partition::StagePlan stage{s, s, {}};
    for (const auto& leaves : stages[s]) stage.shares.push_back({DeviceId(device++), leaves});
    plan.stages.push_back(stage);
  }
  return plan;
}

const std::vector<partition::Plan> kPlans{
    plan_of({{{0, 3}}}),
    plan_of({{{0, 1}, {2, 3}}, {{0, 1}, {2, 3}}}),
    plan_of({{{0, 0}, {1, 3}}, {{0, 3}}, {{0, 1}, {2, 2}, {3, 3}}}),
};

TEST(Program, EachPassOfAStepIsSomebodysOnce) {
  const TrainingSpan span{6, 2, 5};
  for (const auto& plan : kPlans)
    for (std::uint64_t step = 0; step <= span.steps; ++step)
      for (std::uint32_t stage = 0; stage < plan.stages.size(); ++stage) {
        std::map<std::pair<PassKind, MicroBatch>, int> count;
        for (const auto& share : plan.stages[stage].shares)
          for (const auto& pass :
               step_program(plan, span, StageIndex(stage), share.device, Step(step))) {
            EXPECT_EQ(pass_owner(plan, StageIndex(stage), pass.micro_batch), share.device);
            ++count[{pass.kind, pass.micro_batch}];
          }
        const std::size_t training = step < span.steps ? 16 : 0;
        const std::size_t validation = step != 0 && step % 2 == 0 ? 5 : 0;
        EXPECT_EQ(count.size(), training + validation) << "step " << step;
        for (const auto& [pass, times] : count) EXPECT_EQ(times, 1);
      }
}

TEST(Program, ValidatesAfterTheLastUpdateAndWhenAsked) {
  EXPECT_TRUE(validation_due({10, 0, 1}, Step(10)));
  EXPECT_FALSE(validation_due({10, 0, 1}, Step(5)));
  EXPECT_TRUE(validation_due({10, 5, 1}, Step(5)));
  EXPECT_FALSE(validation_due({10, 5, 1}, Step(0)));
  EXPECT_FALSE(validation_due({10, 5, 0}, Step(10)));
}

TEST(Routes, TheVoteTreeReachesEveryMemberOnceAndParentsKnowTheirChildren) {
  std::vector<partition::LeafRange> many;
  for (std::uint32_t i = 0; i < 100; ++i) many.push_back({i, i});
  const auto plan = plan_of({many});
  std::set<DeviceId> reached{plan.members()[0]};
  EXPECT_FALSE(vote_parent(plan, plan.members()[0]));
  for (const auto member : plan.members())
    for (const auto child : vote_children(plan, member)) {
      EXPECT_EQ(vote_parent(plan, child), member);
      EXPECT_TRUE(reached.insert(child).second);
    }
  EXPECT_EQ(reached.size(), 100U);
}

partition::Cluster cluster() {
  partition::Cluster result;
  result.fabrics.push_back({"ethernet", partition::NicKind::kEthernet, 0.1, 500});
  for (std::uint32_t c = 0; c < 2; ++c) {
    const std::string name(1, static_cast<char>('a' + c));
    result.fabrics.push_back({"fast-" + name, partition::NicKind::kInfiniBand, 1, 20});
    for (std::uint32_t h = 0; h < 2; ++h)
      result.hosts.push_back(
          {name + std::to_string(h),
           name,
           "",
           {{"cpu", 1, 1, 1}},
           {{"fast0", FabricId(c + 1), 1, 20}, {"eth0", FabricId(0), 0.1, 500}}});
  }
  return result;
}

TEST(Routes, BothEndsOfALinkNameTheSameNics) {
  const auto hosts = std::make_shared<const partition::Cluster>(cluster());
  partition::PlanOptions options;
  options.pipeline = 2;
  const auto made = partition::plan(*hosts, {4, 1, 1, 1, 1, 1, 1, 1}, {8, 1, 4}, options);
  ASSERT_TRUE(made) << made.error().message();
  const auto plan = std::make_shared<const partition::Plan>(*made);
  std::set<std::tuple<HostId, NicId, HostId, NicId>> links;
  for (std::uint32_t host = 0; host < 4; ++host)
    for (const auto& [peer, pair] :
         Routes(Generation(1), plan, hosts, HostId(host), {}, {}).links())
      links.emplace(HostId(host), pair.own, peer, pair.peer);
  EXPECT_FALSE(links.empty());
  for (const auto& [host, own, peer, theirs] : links) {
    EXPECT_TRUE(links.contains({peer, theirs, host, own}));
    EXPECT_EQ(hosts->hosts[host.index()].nics[own.index()].fabric,
              hosts->hosts[peer.index()].nics[theirs.index()].fabric);
  }
  EXPECT_TRUE(links.contains({HostId(0), NicId(0), HostId(1), NicId(0)})) << "replicas: fast";
  EXPECT_TRUE(links.contains({HostId(0), NicId(1), HostId(2), NicId(1)})) << "stages: Ethernet";
}

}  // namespace
}  // namespace holmes::actors
