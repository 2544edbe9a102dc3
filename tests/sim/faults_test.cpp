// Goal: whatever breaks, and whenever, a job that is not to go on ends in time with one incident
// that names what broke; and a long run holds no more memory than a short one. Method: kills swept
// over every phase of a run, NICs that fall silent, disks that fill, in SimWorld.
#include <set>

#include "sim/sim_job.hpp"

namespace holmes::actors {
namespace {

using testing::kLimit;

class Faults : public testing::SimJobTest {
 protected:
  /// A job that ends when a host is lost.
  JobConfig job(std::uint32_t clusters, std::uint32_t hosts) const {
    auto config = SimJobTest::job(clusters, hosts);
    config.resilience.on_loss = OnLoss::kStop;
    return config;
  }

  /// When the parts of an undisturbed run end.
  struct Phases {
    TimePoint begin, training, last_step, over;
  };
  static Phases phases(const JobConfig& config, std::uint64_t seed) {
    SimWorld world({config, seed, Step(0), nullptr});
    Phases at;
    at.begin = world.now();
    world.run_until([&] { return !world.events_of<PlanInForce>().empty(); }, kLimit);
    at.training = world.now();
    world.run_until([&] { return world.events_of<StepFinished>().size() == config.train.steps; },
                    kLimit);
    at.last_step = world.now();
    world.run_until([] { return false; }, kLimit);
    at.over = world.now();
    return at;
  }

  /// Kills a host at `when`; the job is over soon, and says who went unless nothing was missing.
  static void kill_at(const JobConfig& config, std::uint64_t seed, TimePoint when, bool silent) {
    SimWorld world({config, seed, Step(0), nullptr});
    const HostId victim(static_cast<std::uint32_t>(seed % config.cluster.hosts.size()));
    world.run_until([&] { return world.now() >= when; }, kLimit);
    const bool joining = world.events_of<PlanInForce>().empty();
    const auto killed_at = world.now();
    world.kill(victim, silent);
    const auto outcome = world.run(kLimit);
    ASSERT_TRUE(outcome) << outcome.error().message();
    EXPECT_LE(world.now() - killed_at, std::chrono::seconds(joining ? 36 : silent ? 9 : 5));
    for (const auto& [host, end] : world.ends()) EXPECT_FALSE(end.failed) << end.reason;
    const auto incidents = world.events_of<Incident>();
    if (*outcome == Outcome::kFinished) {
      EXPECT_TRUE(incidents.empty());
      EXPECT_FALSE(joining);
      return;
    }
    EXPECT_EQ(*outcome, Outcome::kFailed);
    ASSERT_EQ(incidents.size(), 1U);
    EXPECT_EQ(incidents[0].host, config.cluster.hosts[victim.index()].name)
        << to_string(incidents[0]);
    EXPECT_FALSE(incidents[0].operation.empty());
  }

  static void sweep(const JobConfig& config, std::uint64_t seed, TimePoint from, TimePoint to,
                    int kills) {
    for (int i = 0; i < kills; ++i) {
      const auto when = from + (to - from) * i / kills;
      SCOPED_TRACE("seed " + std::to_string(seed) + ", kill " + std::to_string(i));
      kill_at(config, seed + static_cast<std::uint64_t>(i), when, i % 3 == 1);
      if (HasFailure()) return;
    }
  }
};

TEST_F(Faults, AKillWhileJoiningOrPreparingIsNamed) {
  const auto config = job(2, 2);
  const auto at = phases(config, 1);
  sweep(config, 1, at.begin, at.training, 16);
}

TEST_F(Faults, AKillDuringStepsIsNamed) {
  auto config = job(2, 2);
  config.run.checkpoint_every = 1;  // so that saving is under way at many of them
  const auto at = phases(config, 2);
  sweep(config, 20, at.training, at.last_step, 32);
}

TEST_F(Faults, AKillWhileSavingValidatingOrEndingIsNamedOrHarmless) {
  const auto config = job(2, 2);
  const auto at = phases(config, 3);
  sweep(config, 60, at.last_step, at.over, 24);
}

// Whatever heartbeat and timeout a job may have: the shortest timeouts for a heartbeat, and the
// shortest heartbeats.
TEST_F(Faults, ASilentHostIsLostUnderEveryTimeoutThatIsAllowed) {
  for (const auto& [heartbeat_ms, timeout_ms] :
       {std::pair{200, 400}, {1000, 2000}, {10, 50}, {50, 100}, {100, 500}, {10, 20000}}) {
    SCOPED_TRACE(timeout_ms);
    auto config = job(2, 2);
    config.resilience.heartbeat_ms = static_cast<std::uint32_t>(heartbeat_ms);
    config.resilience.timeout_ms = static_cast<std::uint32_t>(timeout_ms);
    SimWorld world({config, 9, Step(0), nullptr});
    ASSERT_TRUE(world.run_until([&] { return world.passes().size() >= 10; }, kLimit));
    const auto killed_at = world.now();
    world.kill(HostId(2), true);
    const auto outcome = world.run(kLimit);
    ASSERT_TRUE(outcome) << outcome.error().message();
    EXPECT_EQ(*outcome, Outcome::kFailed);
    EXPECT_LE(world.now() - killed_at,
              2 * std::chrono::milliseconds(timeout_ms) + std::chrono::seconds(6));
    ASSERT_EQ(world.events_of<Incident>().size(), 1U);
    EXPECT_EQ(world.events_of<Incident>()[0].host, config.cluster.hosts[2].name)
        << to_string(world.events_of<Incident>()[0]);
  }
}

TEST_F(Faults, ASilentNicBetweenStagesIsFoundAndNamed) {
  const auto config = job(2, 2);
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const std::string host = config.cluster.hosts[seed % 4].name;
    SimWorld world({config, seed, Step(0), nullptr});
    ASSERT_TRUE(world.run_until([&] { return world.passes().size() >= 5 * seed; }, kLimit));
    const auto cut_at = world.now();
    world.network().cut_nic(host + "/eth0");
    const auto outcome = world.run(kLimit);
    ASSERT_TRUE(outcome) << outcome.error().message();
    ASSERT_EQ(*outcome, Outcome::kFailed);
    EXPECT_LE(world.now() - cut_at, std::chrono::seconds(9));
    const auto incidents = world.events_of<Incident>();
    ASSERT_EQ(incidents.size(), 1U);
    EXPECT_EQ(incidents[0].host, host) << "seed " << seed << ": " << to_string(incidents[0]);
    EXPECT_EQ(incidents[0].nic, "eth0") << to_string(incidents[0]);
  }
}

TEST_F(Faults, ASilentLinkOfTwoHostsIsNamedAsALinkAndBlamesNeither) {
  const auto config = job(1, 2);
  SimWorld world({config, 1, Step(0), nullptr});
  ASSERT_TRUE(world.run_until([&] { return world.passes().size() >= 20; }, kLimit));
  world.network().cut_nic("a0/fast0");
  const auto outcome = world.run(kLimit);
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(*outcome, Outcome::kFailed);
  const auto incidents = world.events_of<Incident>();
  ASSERT_EQ(incidents.size(), 1U);
  const auto text = to_string(incidents[0]);
  EXPECT_EQ(incidents[0].host, "") << text;
  EXPECT_NE(incidents[0].nic.find("fast0"), std::string::npos) << text;
  EXPECT_NE(text.find("a0"), std::string::npos) << text;
  EXPECT_NE(text.find("a1"), std::string::npos) << text;
}

TEST_F(Faults, ASilentNicWhilePreparingEndsTheJob) {
  const auto config = job(2, 2);
  SimWorld world({config, 1, Step(0), nullptr});
  world.network().cut_nic("b1/eth0");
  const auto outcome = world.run(kLimit);
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(*outcome, Outcome::kFailed);
  ASSERT_EQ(world.events_of<Incident>().size(), 1U);
  const auto incident = world.events_of<Incident>()[0];
  EXPECT_EQ(incident.operation, "preparing");
  EXPECT_EQ(incident.host, "b1") << to_string(incident);
}

TEST_F(Faults, AgentsEndByThemselvesWhenTheCoordinatorFallsSilent) {
  const auto config = job(2, 2);
  SimWorld world({config, 3, Step(0), nullptr});
  ASSERT_TRUE(world.run_until([&] { return world.passes().size() >= 30; }, kLimit));
  world.network().cut_nic("coordinator/control");
  const auto outcome = world.run(kLimit);
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(*outcome, Outcome::kFailed);
  ASSERT_EQ(world.ends().size(), 4U);
  for (const auto& [host, end] : world.ends()) {
    EXPECT_TRUE(end.failed);
    EXPECT_NE(end.reason.find("the coordinator is gone: no sign of life"), std::string::npos)
        << end.reason;
  }
}

TEST_F(Faults, AResetLinkEndsTheJobThoughBothHostsLive) {
  const auto config = job(2, 2);
  SimWorld world({config, 4, Step(0), nullptr});
  ASSERT_TRUE(world.run_until([&] { return world.passes().size() >= 30; }, kLimit));
  world.network().reset("a0/eth0", "b0/eth0");
  const auto outcome = world.run(kLimit);
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(*outcome, Outcome::kFailed);
  ASSERT_EQ(world.events_of<Incident>().size(), 1U);
  EXPECT_NE(world.events_of<Incident>()[0].nic.find("eth0"), std::string::npos);
}

TEST_F(Faults, AFullDiskEndsTheJobAndKeepsTheOldCheckpoint) {
  auto config = job(2, 2);
  config.run.checkpoint_every = 1;
  MemoryStore store;
  SimWorld world({config, 1, Step(0), &store});
  ASSERT_TRUE(world.run_until([&] { return !world.events_of<CheckpointSaved>().empty(); }, kLimit));
  const auto kept = world.events_of<CheckpointSaved>()[0].step;
  store.fill_disk();
  const auto outcome = world.run(kLimit);
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(*outcome, Outcome::kFailed);
  const auto incidents = world.events_of<Incident>();
  ASSERT_EQ(incidents.size(), 1U);
  EXPECT_EQ(incidents[0].cause.code(), ErrorCode::kOutOfResources);
  EXPECT_NE(incidents[0].operation.find("saving the checkpoint"), std::string::npos);
  EXPECT_FALSE(incidents[0].host.empty());
  EXPECT_NE(store.checkpoint(kept), nullptr);
}

TEST_F(Faults, StoppingAtAnyMomentEndsWithStateSaved) {
  const auto config = job(2, 2);
  const auto at = phases(config, 5);
  for (int i = 0; i < 16; ++i) {
    SimWorld world({config, 5, Step(0), nullptr});
    const auto when = at.begin + (at.over - at.begin) * i / 16;
    world.run_until([&] { return world.now() >= when; }, kLimit);
    world.request_stop();
    world.request_stop();
    const auto outcome = world.run(kLimit);
    ASSERT_TRUE(outcome) << i << ": " << outcome.error().message();
    EXPECT_NE(*outcome, Outcome::kFailed) << i;
    EXPECT_TRUE(world.events_of<Incident>().empty());
    const auto steps = world.events_of<StepFinished>();
    if (!steps.empty()) {
      ASSERT_FALSE(world.events_of<CheckpointSaved>().empty()) << i;
      EXPECT_EQ(world.events_of<CheckpointSaved>().back().step.value(),
                steps.back().step.value() + 1)
          << i;
    }
  }
}

// All memory is taken while the plan is prepared: not one buffer more in a run of many steps, with
// far more validation micro-batches than fit between two stages.
TEST_F(Faults, NoStepAsksTheSystemForMemory) {
  auto config = job(2, 2);
  config.train.steps = 30;
  config.data.validate_every = 7;
  config.data.validation_batches = 24;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SimWorld world({config, seed, Step(0), nullptr});
    const auto allocations = [&] {
      std::uint64_t count = 0;
      for (std::uint32_t host = 0; host < 4; ++host)
        count += world.memory(HostId(host)).allocation_count;
      return count;
    };
    ASSERT_TRUE(world.run_until([&] { return !world.events_of<PlanInForce>().empty(); }, kLimit));
    const auto before = allocations();
    EXPECT_GT(before, 0U);
    EXPECT_TRUE(world.run_until(
        [&] { return world.events_of<StepFinished>().size() == config.train.steps; }, kLimit));
    EXPECT_EQ(allocations(), before) << "seed " << seed;
  }
}

}  // namespace
}  // namespace holmes::actors
