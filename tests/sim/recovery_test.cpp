// Goal: whichever host dies, at whatever moment, training goes on with the others and ends with the
// weights of an undisturbed run bit for bit; also when a second host dies in the middle of the
// recovery. Method: kills at moments drawn from the seed, in SimWorld; losses, validation and
// weights are compared with those of a serial run, and each seed is run twice.
#include <gtest/gtest.h>

#include "sim/serial_run.hpp"
#include "sim/sim_job.hpp"

namespace holmes::actors {
namespace {

using testing::kLimit;
using testing::Serial;

/// When and whom to kill: after so many computed passes, and so much virtual time later.
struct Kill {
  HostId host;
  std::size_t after_passes = 0;
  Duration later{};
  bool silent = false;
};

class Recovery : public testing::SimJobTest {
 protected:
  /// Runs to the end with these kills; what happened is in the world.
  static void disturb(SimWorld& world, const std::vector<Kill>& kills) {
    for (const auto& kill : kills) {
      world.run_until([&] { return world.passes().size() >= kill.after_passes; }, kLimit);
      const auto at = world.now() + kill.later;
      world.run_until([&] { return world.now() >= at; }, kLimit);
      world.kill(kill.host, kill.silent);
    }
  }

  /// What a job was at that never trained; empty when it trains.
  static std::string failed_start(SimWorld& world) {
    world.run_until([&] { return !world.passes().empty(); }, kLimit);
    if (!world.passes().empty() || world.events_of<Incident>().empty()) return "";
    return world.events_of<Incident>().back().operation;
  }

  static Kill draw(Random& random, std::uint32_t hosts, std::uint64_t passes, bool silent) {
    return {HostId(static_cast<std::uint32_t>(random.below(hosts))), 1 + random.below(passes),
            std::chrono::microseconds(random.below(3000)), silent};
  }

  /// The same run twice: as expected, and with the same trace.
  static std::unique_ptr<SimWorld> twice(const JobConfig& config, std::uint64_t seed,
                                         const std::vector<Kill>& kills, const Serial& expected) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + text(kills));
    const auto run = [&] {
      auto world = std::make_unique<SimWorld>(SimJob{config, seed, Step(0), nullptr});
      disturb(*world, kills);
      testing::expect_undisturbed(*world, config, expected);
      return world;
    };
    auto first = run();
    const auto second = run();
    EXPECT_EQ(first->trace_hash(), second->trace_hash());
    return first;
  }

  static std::string text(const std::vector<Kill>& kills) {
    std::string text;
    for (const auto& kill : kills)
      text += "host " + std::to_string(kill.host.value()) + " after " +
              std::to_string(kill.after_passes) + " passes and " +
              std::to_string(kill.later / std::chrono::microseconds(1)) + " us" +
              (kill.silent ? ", silently; " : "; ");
    return text;
  }
};

TEST_F(Recovery, AnyHostMayDieAtAnyMomentOfAStep) {
  auto config = job(2, 2);
  const auto expected = testing::serial_run(config);
  int regrouped = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    config.run.checkpoint_every = seed % 2;
    const std::vector<Kill> kills{draw(random, 4, 150, seed % 5 == 0)};
    const auto world = twice(config, seed, kills, expected);
    if (HasFailure()) return;
    for (const auto& event : world->events_of<Regrouped>()) {
      ++regrouped;
      EXPECT_EQ(event.lost, std::vector{config.cluster.hosts[kills[0].host.index()].name});
      EXPECT_EQ(event.steps_lost, 0U);
    }
  }
  EXPECT_GT(regrouped, 40);
}

// Before all have joined there is no job that could go on: the start fails. From then on it goes
// on.
TEST_F(Recovery, BeforeTheFirstPassTheStartFailsOrTheOthersTrain) {
  const auto config = job(2, 2);
  const auto expected = testing::serial_run(config);
  int started = 0;
  int failed = 0;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(seed);
    SimWorld world({config, seed, Step(0), nullptr});
    disturb(world, {{HostId(seed % 4), 0, std::chrono::microseconds(40 * seed), false}});
    const auto failure = failed_start(world);
    if (failure.empty()) {
      ++started;
      testing::expect_undisturbed(world, config, expected);
    } else {
      ++failed;
      EXPECT_EQ(failure, "joining");
    }
  }
  EXPECT_GT(started, 3);
  EXPECT_GT(failed, 3);
}

TEST_F(Recovery, OfLlamaWithEitherHead) {
  for (const auto head : {model::Head::kUntied, model::Head::kTied})
    for (const auto& [clusters, hosts] : {std::pair{1U, 2U}, {2U, 1U}, {2U, 2U}, {4U, 1U}}) {
      const auto config = llama_job(clusters, hosts, head);
      const auto expected = testing::serial_run(config);
      for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        Random random(seed);
        twice(config, seed, {draw(random, clusters * hosts, 60 * clusters, seed % 5 == 0)},
              expected);
        if (HasFailure()) return;
      }
    }
}

TEST_F(Recovery, EveryLayoutHasKeepersEnough) {
  for (const auto& [clusters, hosts] :
       {std::pair{1U, 2U}, {2U, 1U}, {1U, 4U}, {4U, 1U}, {3U, 2U}}) {
    const auto config = job(clusters, hosts);
    const auto expected = testing::serial_run(config);
    for (std::uint64_t seed = 1; seed <= 16; ++seed) {
      Random random(seed);
      twice(config, seed, {draw(random, clusters * hosts, 60 * clusters, seed % 5 == 0)}, expected);
      if (HasFailure()) return;
    }
  }
}

// The second one dies a while after the first: long after the recovery, or in the middle of it.
// They are never owner and keeper of one shard: of those, both copies would be gone at once.
TEST_F(Recovery, ASecondHostMayDieInTheMiddleOfTheRecoveryFromTheFirst) {
  const auto config = job(2, 2);
  const auto expected = testing::serial_run(config);
  int together = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    auto first = draw(random, 4, 120, seed % 7 == 0);
    auto second = first;
    second.host = HostId((first.host.value() + 2) % 4);  // of the other cluster
    second.later = std::chrono::microseconds(random.below(seed % 2 == 0 ? 400 : 20000));
    const auto world = twice(config, seed, {first, second}, expected);
    if (HasFailure()) return;
    for (const auto& event : world->events_of<Regrouped>())
      if (event.lost.size() == 2) ++together;
  }
  EXPECT_GT(together, 5) << "no second loss fell into a recovery";
}

TEST_F(Recovery, OneHostAfterTheOtherUntilOneIsLeft) {
  auto config = job(2, 2);
  config.train.steps = 8;
  const auto expected = testing::serial_run(config);
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Random random(seed);
    std::vector<Kill> kills;
    std::vector<std::uint32_t> hosts{0, 1, 2, 3};
    for (std::size_t i = 0; i < 3; ++i) {
      std::swap(hosts[i], hosts[i + random.below(hosts.size() - i)]);
      kills.push_back(
          {HostId(hosts[i]), 40 + 90 * i, std::chrono::microseconds(random.below(3000)), false});
    }
    twice(config, seed, kills, expected);
    if (HasFailure()) return;
  }
}

TEST_F(Recovery, WithBothCopiesGoneTheJobGoesBackToItsCheckpoint) {
  auto config = job(2, 2);
  config.run.checkpoint_every = 1;
  config.train.steps = 6;
  const auto expected = testing::serial_run(config);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    SimWorld world({config, seed, Step(0), nullptr});
    ASSERT_TRUE(
        world.run_until([&] { return !world.events_of<CheckpointSaved>().empty(); }, kLimit));
    world.kill(HostId(0));
    world.kill(HostId(1));  // owner and keeper of the first stage's shards
    const auto outcome = world.run(kLimit);
    ASSERT_TRUE(outcome) << outcome.error().message();
    EXPECT_EQ(*outcome, Outcome::kFinished);
    EXPECT_EQ(testing::weights(world, Step(config.train.steps)), expected.weights);
    ASSERT_EQ(world.events_of<Regrouped>().size(), 1U);
    std::map<Step, double> last;
    for (const auto& step : world.events_of<StepFinished>()) last[step.step] = step.loss;
    ASSERT_EQ(last.size(), expected.losses.size());
    for (const auto& [step, loss] : last) EXPECT_EQ(loss, expected.losses[step.index()]);
  }
}

TEST_F(Recovery, WithBothCopiesGoneAndNoCheckpointTheJobEndsAndSaysWhy) {
  const auto config = job(2, 2);
  SimWorld world({config, 1, Step(0), nullptr});
  ASSERT_TRUE(world.run_until([&] { return !world.events_of<StepFinished>().empty(); }, kLimit));
  world.kill(HostId(2));
  world.kill(HostId(3));
  const auto outcome = world.run(kLimit);
  ASSERT_TRUE(outcome) << outcome.error().message();
  EXPECT_EQ(*outcome, Outcome::kFailed);
  const auto last = to_string(world.events_of<Incident>().back());
  EXPECT_NE(last.find("both copies"), std::string::npos) << last;
  EXPECT_NE(last.find("run.checkpoint_every"), std::string::npos) << last;
}

TEST_F(Recovery, ABrokenLinkIsOpenedAgainAndNobodyIsLost) {
  const auto config = job(2, 2);
  const auto expected = testing::serial_run(config);
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    SimWorld world({config, seed, Step(0), nullptr});
    ASSERT_TRUE(world.run_until([&] { return world.passes().size() >= 10 * seed; }, kLimit));
    world.network().reset("a0/eth0", "b0/eth0");
    testing::expect_undisturbed(world, config, expected);
    EXPECT_EQ(world.ends().size(), 4U);
  }
}

TEST_F(Recovery, AStopThatWasAskedForIsNotForgotten) {
  const auto config = job(2, 2);
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    SimWorld world({config, seed, Step(0), nullptr});
    const auto passes = 20 + random.below(60);
    ASSERT_TRUE(world.run_until([&] { return world.passes().size() >= passes; }, kLimit));
    if (seed % 2 == 0) world.request_stop();
    world.kill(HostId(static_cast<std::uint32_t>(random.below(4))));
    if (seed % 2 == 1) world.request_stop();
    const auto outcome = world.run(kLimit);
    ASSERT_TRUE(outcome) << outcome.error().message();
    EXPECT_NE(*outcome, Outcome::kFailed);
    ASSERT_FALSE(world.events_of<CheckpointSaved>().empty());
    EXPECT_EQ(world.events_of<CheckpointSaved>().back().step.value(),
              world.events_of<StepFinished>().back().step.value() + 1);
  }
}

}  // namespace
}  // namespace holmes::actors
