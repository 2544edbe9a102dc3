// Goal: hosts leave a job that trains, and come to it, at any moment, in any order and also while
// others are lost, and it ends with the weights of an undisturbed run bit for bit. Method: what
// happens is drawn from the seed, in SimWorld; losses, validation and weights are compared with
// those of a serial run, and each seed is run twice.
#include <gtest/gtest.h>

#include "sim/serial_run.hpp"
#include "sim/sim_job.hpp"

namespace holmes::actors {
namespace {

using testing::kLimit;
using testing::Serial;

enum class Act : std::uint8_t { kKill, kKillSilently, kRevive, kLeave };

/// What happens to a host after so many computed passes of the job, and so much later.
struct Happening {
  Act act;
  HostId host;
  std::size_t after_passes = 0;
  Duration later{};
};

class Members : public testing::SimJobTest {
 protected:
  Members() : config_(job(2, 2)) { config_.train.steps = 8; }

  static void make_happen(SimWorld& world, const std::vector<Happening>& happenings) {
    for (const auto& what : happenings) {
      world.run_until([&] { return world.passes().size() >= what.after_passes; }, kLimit);
      const auto at = world.now() + what.later;
      world.run_until([&] { return world.now() >= at; }, kLimit);
      switch (what.act) {
        case Act::kKill:
        case Act::kKillSilently:
          world.kill(what.host, what.act == Act::kKillSilently);
          break;
        case Act::kRevive:
          world.revive(what.host);
          break;
        case Act::kLeave:
          world.leave(what.host);
          break;
      }
    }
  }

  /// The same run twice: as if nothing had happened, and with the same trace.
  std::unique_ptr<SimWorld> twice(std::uint64_t seed, const std::vector<Happening>& happenings,
                                  const Serial& expected) const {
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + text(happenings));
    const auto run = [&] {
      auto world = std::make_unique<SimWorld>(SimJob{config_, seed, Step(0), nullptr});
      make_happen(*world, happenings);
      testing::expect_undisturbed(*world, config_, expected);
      return world;
    };
    auto first = run();
    EXPECT_EQ(first->trace_hash(), run()->trace_hash());
    return first;
  }

  static std::string text(const std::vector<Happening>& happenings) {
    constexpr std::array kNames{"is killed", "is killed silently", "comes", "leaves"};
    std::string text;
    for (const auto& what : happenings)
      text += "host " + std::to_string(what.host.value()) + " " +
              kNames.at(static_cast<std::size_t>(what.act)) + " after " +
              std::to_string(what.after_passes) + " passes and " +
              std::to_string(what.later / std::chrono::microseconds(1)) + " us; ";
    return text;
  }

  std::string name(HostId host) const { return config_.cluster.hosts[host.index()].name; }

  /// Whether the last plan has work for all four hosts, as the first one had.
  static bool is_whole(const SimWorld& world) {
    const auto plans = world.events_of<PlanInForce>();
    return plans.back().plan == plans.front().plan;
  }

  JobConfig config_;
};

TEST_F(Members, AnyHostMayLeaveAtAnyMoment) {
  const auto expected = testing::serial_run(config_);
  int left = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    config_.run.checkpoint_every = seed % 3;
    const HostId host(static_cast<std::uint32_t>(random.below(4)));
    const auto world = twice(
        seed,
        {{Act::kLeave, host, random.below(250), std::chrono::microseconds(random.below(3000))}},
        expected);
    if (HasFailure()) return;
    EXPECT_TRUE(world->events_of<Incident>().empty());
    for (const auto& event : world->events_of<Regrouped>()) {
      ++left;
      EXPECT_EQ(event.left, std::vector{name(host)});
      EXPECT_TRUE(event.lost.empty());
      EXPECT_EQ(event.steps_lost, 0U);
      EXPECT_EQ(world->ends().at(host).reason, "has left the job, as asked");
    }
  }
  EXPECT_GT(left, 20);
}

TEST_F(Members, AHostThatWasLostComesBackAndTrains) {
  const auto expected = testing::serial_run(config_);
  int came = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    config_.run.checkpoint_every = seed % 2;
    const HostId host(static_cast<std::uint32_t>(random.below(4)));
    const auto passes = 1 + random.below(150);
    const auto world =
        twice(seed,
              {{Act::kKill, host, passes, std::chrono::microseconds(random.below(3000))},
               {Act::kRevive, host, passes, std::chrono::microseconds(1 + random.below(20000))}},
              expected);
    if (HasFailure()) return;
    const auto changes = world->events_of<Regrouped>();
    if (changes.empty() || changes.back().joined.empty()) continue;
    ++came;
    EXPECT_EQ(changes.back().joined, std::vector{name(host)});
    EXPECT_TRUE(is_whole(*world)) << "the plan of all hosts is in force again";
  }
  EXPECT_GT(came, 20);
}

TEST_F(Members, AHostThatHasLeftMayComeBack) {
  const auto expected = testing::serial_run(config_);
  config_.resilience.on_loss = OnLoss::kStop;  // nothing is kept twice for it
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    const HostId host(seed % 4);
    SimWorld world({config_, seed, Step(0), nullptr});
    make_happen(world, {{Act::kLeave, host, 20 + 5 * seed, {}}});
    ASSERT_TRUE(world.run_until([&] { return !world.events_of<Regrouped>().empty(); }, kLimit));
    world.revive(host);
    testing::expect_undisturbed(world, config_, expected);
    EXPECT_EQ(world.events_of<Regrouped>().size(), 2U);
    EXPECT_TRUE(is_whole(world));
  }
}

// Whatever else happens to a host that is on its way out or in: it is lost like any other.
TEST_F(Members, AHostMayBeLostWhileItLeavesOrComes) {
  const auto expected = testing::serial_run(config_);
  int lost = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const HostId host(static_cast<std::uint32_t>(random.below(4)));
    const auto passes = 20 + random.below(60);
    const auto soon = [&] { return std::chrono::microseconds(random.below(4000)); };
    const auto kill = seed % 5 == 0 ? Act::kKillSilently : Act::kKill;
    std::vector<Happening> happenings{{Act::kLeave, host, passes, soon()}};
    if (seed % 2 == 0)
      happenings = {{Act::kKill, host, passes, soon()},
                    {Act::kRevive, host, passes, std::chrono::milliseconds(15)}};
    happenings.push_back({kill, host, passes, soon()});
    const auto world = twice(seed, happenings, expected);
    if (HasFailure()) return;
    for (const auto& event : world->events_of<Regrouped>())
      if (!event.lost.empty()) ++lost;
  }
  EXPECT_GT(lost, 40);
}

TEST_F(Members, OneHostAfterTheOtherIsReplaced) {
  config_.train.steps = 16;
  const auto expected = testing::serial_run(config_);
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Random random(seed);
    std::vector<Happening> happenings;
    for (std::size_t i = 0; i < 5; ++i) {
      const HostId host(static_cast<std::uint32_t>(random.below(4)));
      const auto out = random.below(2) == 0 ? Act::kKill : Act::kLeave;
      const auto later = std::chrono::microseconds(random.below(3000));
      happenings.push_back({out, host, 40 + 110 * i, later});
      happenings.push_back({Act::kRevive, host, 90 + 110 * i, later});
    }
    const auto world = twice(seed, happenings, expected);
    if (HasFailure()) return;
    EXPECT_GT(world->events_of<Regrouped>().size(), 5U);
  }
}

TEST_F(Members, WhileAnotherHostIsLostNobodyIsForgotten) {
  const auto expected = testing::serial_run(config_);
  int together = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    const auto first = static_cast<std::uint32_t>(random.below(4));
    const HostId other((first + 2) % 4);  // of the other cluster: no keeper of its shards
    const auto passes = 20 + random.below(60);
    const auto world =
        twice(seed,
              {{Act::kLeave, HostId(first), passes, std::chrono::microseconds(random.below(2000))},
               {Act::kKill, other, passes, std::chrono::microseconds(random.below(3000))}},
              expected);
    if (HasFailure()) return;
    for (const auto& event : world->events_of<Regrouped>())
      if (!event.lost.empty() && !event.left.empty()) ++together;
  }
  EXPECT_GT(together, 3) << "no loss fell into the time in which a host left";
}

TEST_F(Members, HostsMayLeaveOneRightAfterTheOther) {
  config_.train.steps = 16;  // each change needs some
  const auto expected = testing::serial_run(config_);
  std::size_t apart = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    const auto first = static_cast<std::uint32_t>(random.below(4));
    const auto passes = 20 + random.below(60);
    std::vector<Happening> happenings;
    for (std::uint32_t i = 0; i < 3; ++i)
      happenings.push_back({Act::kLeave, HostId((first + i) % 4), passes,
                            std::chrono::microseconds(random.below(3000))});
    const auto world = twice(seed, happenings, expected);
    if (HasFailure()) return;
    EXPECT_TRUE(world->events_of<Incident>().empty());
    // One that the plan had no use for goes without a change.
    for (const auto& [host, end] : world->ends())
      EXPECT_EQ(end.reason == "has left the job, as asked", host != HostId((first + 3) % 4));
    apart += world->events_of<Regrouped>().size() - 1;
  }
  EXPECT_GT(apart, 10U);
}

// The machine of an agent that hangs is still a member: another agent of it is turned away.
TEST_F(Members, AHostThatIsHereDoesNotComeTwice) {
  const auto expected = testing::serial_run(config_);
  SimWorld world({config_, 1, Step(0), nullptr});
  make_happen(world, {{Act::kKillSilently, HostId(1), 40, {}}, {Act::kRevive, HostId(1), 40, {}}});
  ASSERT_TRUE(world.run_until([&] { return world.ends().contains(HostId(1)); }, kLimit));
  EXPECT_TRUE(world.ends().at(HostId(1)).failed);
  world.revive(HostId(1));  // which ends the one before
  const auto outcome = world.run(kLimit);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(*outcome, Outcome::kFinished);
  EXPECT_EQ(testing::weights(world, Step(config_.train.steps)), expected.weights);
}

TEST_F(Members, WhenAllAreToLeaveTheJobStopsWithACheckpoint) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    SimWorld world({config_, seed, Step(0), nullptr});
    for (std::uint32_t i = 0; i < 4; ++i)
      make_happen(world, {{Act::kLeave, HostId((seed + i) % 4), 40,
                           std::chrono::microseconds(random.below(3000))}});
    const auto outcome = world.run(kLimit);
    ASSERT_TRUE(outcome) << outcome.error().message();
    EXPECT_EQ(*outcome, Outcome::kInterrupted);
    ASSERT_FALSE(world.events_of<CheckpointSaved>().empty());
    EXPECT_EQ(world.events_of<CheckpointSaved>().back().step.value(),
              world.events_of<StepFinished>().back().step.value() + 1);
  }
}

}  // namespace
}  // namespace holmes::actors
