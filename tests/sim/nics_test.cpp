// Goal: NICs die while their hosts live, at any moment, and come back: training goes on over other
// NICs, nobody is lost, and the job ends with the weights of an undisturbed run bit for bit.
// Method: NICs are cut in SimWorld at moments drawn from the seed; losses, validation and weights
// are compared with those of a serial run, and each seed is run twice.
#include <gtest/gtest.h>

#include "sim/serial_run.hpp"
#include "sim/sim_job.hpp"

namespace holmes::actors {
namespace {

using testing::kLimit;

class Nics : public testing::SimJobTest {
 protected:
  Nics() : config_(job(2, 2)) {
    config_.train.steps = 8;
    config_.resilience.timeout_ms = 1000;
    config_.resilience.nic_retry_ms = 100;
  }

  using Disturb = std::function<void(SimWorld&)>;
  /// The same run twice: as if nothing had happened, and with the same trace.
  std::unique_ptr<SimWorld> twice(std::uint64_t seed, const Disturb& disturb) const {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto run = [&] {
      auto world = std::make_unique<SimWorld>(SimJob{config_, seed, Step(0), nullptr});
      disturb(*world);
      testing::expect_undisturbed(*world, config_, testing::serial_run(config_));
      return world;
    };
    auto first = run();
    EXPECT_EQ(first->trace_hash(), run()->trace_hash());
    return first;
  }

  static void after_passes(SimWorld& world, std::size_t passes) {
    world.run_until([&] { return world.passes().size() >= passes; }, kLimit);
  }
  static bool regrouped(SimWorld& world, std::size_t times) {
    return world.run_until([&] { return world.events_of<Regrouped>().size() >= times; }, kLimit) &&
           world.events_of<Regrouped>().size() >= times;
  }
  /// A second Ethernet between the clusters, as slow as the first.
  void add_second_ethernet() {
    config_.cluster.fabrics.push_back({"spare", partition::NicKind::kEthernet, 0.1, 500});
    const FabricId spare(static_cast<std::uint32_t>(config_.cluster.fabrics.size() - 1));
    for (auto& host : config_.cluster.hosts) host.nics.push_back({"eth1", spare, 0.1, 500});
  }

  JobConfig config_;
};

TEST_F(Nics, AnyFastNicIsReplacedByTheSlowOneAtAnyMoment) {
  int replaced = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    config_.run.checkpoint_every = seed % 3;
    const std::string nic = config_.cluster.hosts[random.below(4)].name + "/fast0";
    const auto passes = random.below(200);
    const auto world = twice(seed, [&](SimWorld& cut) {
      after_passes(cut, passes);
      cut.network().cut_nic(nic);
    });
    if (HasFailure()) return;
    for (const auto& event : world->events_of<Regrouped>()) {
      EXPECT_TRUE(event.lost.empty()) << to_string(event);
      EXPECT_EQ(event.steps_lost, 0U);
      for (const auto& lost : event.nics_lost) EXPECT_TRUE(lost.ends_with("/fast0")) << lost;
      if (!event.nics_lost.empty()) ++replaced;
    }
  }
  EXPECT_GE(replaced, 18);
}

TEST_F(Nics, ANicThatComesBackIsUsedAgain) {
  config_.train.steps = 60;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const std::string nic = config_.cluster.hosts[seed % 4].name + "/fast0";
    const auto world = twice(seed, [&](SimWorld& disturbed) {
      after_passes(disturbed, 20 * seed);
      disturbed.network().cut_nic(nic);
      ASSERT_TRUE(regrouped(disturbed, 1)) << "it was lost";
      disturbed.network().heal_nic(nic);
      ASSERT_TRUE(regrouped(disturbed, 2)) << "it is back";
    });
    if (HasFailure()) return;
    const auto changes = world->events_of<Regrouped>();
    ASSERT_EQ(changes.size(), 2U);
    EXPECT_EQ(changes[1].nics_back, changes[0].nics_lost);
    EXPECT_TRUE(changes[1].nics_lost.empty() && changes[1].lost.empty());
    const auto plans = world->events_of<PlanInForce>();
    EXPECT_EQ(plans.back().plan, plans.front().plan) << "all is as it was";
  }
}

// The host that lost links to two others is at fault, and keeps its place by its other NIC.
TEST_F(Nics, ANicBetweenClustersIsReplacedWhereThereIsAnother) {
  add_second_ethernet();
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const auto nic = config_.cluster.hosts[seed % 4].name + "/eth0";
    const auto world = twice(seed, [&](SimWorld& cut) {
      after_passes(cut, 10 * seed);
      cut.network().cut_nic(nic);
    });
    if (HasFailure()) return;
    const auto incidents = world->events_of<Incident>();
    ASSERT_EQ(incidents.size(), 1U);
    EXPECT_TRUE(incidents[0].other_nics);
    EXPECT_EQ(incidents[0].nic, nic) << to_string(incidents[0]);
    EXPECT_EQ(incidents[0].host, "");
  }
}

// Its agent is told so, and ends; the others go on.
TEST_F(Nics, AHostIsLostOnlyWhereNoNicIsLeftToReachIt) {
  const auto expected = testing::serial_run(config_);
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto& host = config_.cluster.hosts[seed % 4].name;
    SimWorld world({config_, seed, Step(0), nullptr});
    after_passes(world, 10 * seed);
    world.network().cut_nic(host + "/eth0");
    const auto outcome = world.run(kLimit);
    ASSERT_TRUE(outcome) << outcome.error().message();
    EXPECT_EQ(*outcome, Outcome::kFinished);
    EXPECT_EQ(testing::weights(world, Step(config_.train.steps)), expected.weights);
    const auto changes = world.events_of<Regrouped>();
    ASSERT_FALSE(changes.empty());
    EXPECT_EQ(changes[0].lost, std::vector{host});
    EXPECT_TRUE(changes[0].nics_lost.empty());
  }
}

TEST_F(Nics, ANicThatFlapsIsTriedLessAndLess) {
  config_.train.steps = 400;
  const auto world = twice(3, [&](SimWorld& flapping) {
    after_passes(flapping, 20);
    for (int i = 0; i < 200 && flapping.events_of<StepFinished>().size() < 350; ++i) {
      flapping.network().cut_nic("a1/fast0");
      const auto until = flapping.now() + std::chrono::milliseconds(1500);
      flapping.run_until([&] { return flapping.now() >= until; }, kLimit);
      flapping.network().heal_nic("a1/fast0");
      const auto again = flapping.now() + std::chrono::milliseconds(1500);
      flapping.run_until([&] { return flapping.now() >= again; }, kLimit);
    }
  });
  const auto changes = world->events_of<Regrouped>();
  std::size_t lost = 0;
  for (const auto& event : changes) {
    EXPECT_TRUE(event.lost.empty()) << to_string(event);
    if (!event.nics_lost.empty()) ++lost;
  }
  EXPECT_GE(lost, 2U) << "it flapped";
  EXPECT_LE(lost, 12U) << "each loss doubles the time until it is tried again";
}

TEST_F(Nics, AHostMayDieWhileANicIsReplaced) {
  int both = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Random random(seed);
    const auto cut_at = 1 + random.below(150);
    const auto later = std::chrono::milliseconds(random.below(2500));
    const HostId dies(static_cast<std::uint32_t>(random.below(4)));
    const auto nic = config_.cluster.hosts[random.below(4)].name + "/fast0";
    const auto done = twice(seed, [&](SimWorld& world) {
      after_passes(world, cut_at);
      world.network().cut_nic(nic);
      const auto until = world.now() + later;
      world.run_until([&] { return world.now() >= until; }, kLimit);
      world.kill(dies);
    });
    if (HasFailure()) return;
    bool nic_lost = false;
    bool host_lost = false;
    for (const auto& event : done->events_of<Regrouped>()) {
      nic_lost = nic_lost || !event.nics_lost.empty();
      host_lost = host_lost || !event.lost.empty();
    }
    if (nic_lost && host_lost) ++both;
  }
  EXPECT_GE(both, 3);
}

}  // namespace
}  // namespace holmes::actors
