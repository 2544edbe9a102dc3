// Goal: when a host computes slower for good, or fast again, the job goes on by a plan for that, is
// about as fast as one that was planned for it from the start, and has the bits of an undisturbed
// run; noise moves nothing. Method: hosts are slowed down in SimWorld, where operators are noisy by
// themselves; losses, validation and weights are compared with those of a serial run.
#include <gtest/gtest.h>

#include "holmes/partition/simulate.hpp"

#include "sim/serial_run.hpp"
#include "sim/sim_job.hpp"

namespace holmes::actors {
namespace {

using testing::kLimit;

class Adapting : public testing::SimJobTest {
 protected:
  Adapting() : config_(job(2, 2)) {
    config_.train.steps = 150;
    config_.train.shape = {16, 1, 8};
    config_.data.validate_every = 0;
    config_.resilience.heartbeat_ms = 20;
    config_.resilience.timeout_ms = 1000;
    config_.resilience.adapt = true;
    // Slow enough for computing to matter beside the networks.
    for (auto& host : config_.cluster.hosts) host.devices[0].tflops = 2e-5;
  }

  static bool steps_done(SimWorld& world, std::size_t steps) {
    return world.run_until([&] { return world.events_of<StepFinished>().size() >= steps; }, kLimit);
  }
  static std::vector<Regrouped> adaptations(const SimWorld& world) {
    auto events = world.events_of<Regrouped>();
    std::erase_if(events, [](const Regrouped& event) { return event.adapted.empty(); });
    return events;
  }
  JobConfig slowed_down(HostId slow, double slowness) const {
    auto config = config_;
    config.cluster.hosts[slow.index()].devices[0].tflops /= slowness;
    return config;
  }
  /// Without noise.
  static double step_s(const partition::Plan& plan, const JobConfig& config) {
    return partition::simulate(plan, config.cluster, model_cost(config), {}).value().step_s;
  }
  static partition::Plan best_plan(JobConfig config) {
    config.parallel.strategy = partition::Strategy::kAuto;
    return plan_of(config).value();
  }

  JobConfig config_;
};

TEST_F(Adapting, ASlowHostGetsLessToDo) {
  const auto expected = testing::serial_run(config_);
  for (std::uint32_t host = 0; host < 4; ++host) {
    SCOPED_TRACE(config_.cluster.hosts[host].name);
    const double slowness = host < 2 ? 8 : 3;  // the first stage has less to do: it has no head
    SimWorld world({config_, host + 1, Step(0), nullptr});
    ASSERT_TRUE(steps_done(world, 20));
    world.slow_down(HostId(host), slowness);
    testing::expect_undisturbed(world, config_, expected);
    const auto changes = adaptations(world);
    ASSERT_FALSE(changes.empty());
    EXPECT_NE(changes[0].adapted.find("host " + config_.cluster.hosts[host].name + " computes at"),
              std::string::npos)
        << changes[0].adapted;
    EXPECT_TRUE(world.events_of<Incident>().empty());
    const auto slowed = slowed_down(HostId(host), slowness);
    EXPECT_LE(step_s(world.events_of<PlanInForce>().back().plan, slowed),
              step_s(best_plan(slowed), slowed) / 0.9)
        << to_string(changes.back());
  }
}

TEST_F(Adapting, AHostThatRecoversGetsItsWorkBack) {
  config_.train.steps = 300;
  const auto expected = testing::serial_run(config_);
  SimWorld world({config_, 5, Step(0), nullptr});
  ASSERT_TRUE(steps_done(world, 20));
  world.slow_down(HostId(3), 4);
  ASSERT_TRUE(steps_done(world, 150));
  ASSERT_FALSE(adaptations(world).empty());
  const auto adapted = adaptations(world).size();
  world.slow_down(HostId(3), 1);
  testing::expect_undisturbed(world, config_, expected);
  EXPECT_GT(adaptations(world).size(), adapted);
  const auto plans = world.events_of<PlanInForce>();
  EXPECT_EQ(plans.back().plan, plans.front().plan);
}

TEST_F(Adapting, NoiseMovesNothing) {
  config_.train.steps = 200;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    SimWorld world({config_, seed, Step(0), nullptr});
    ASSERT_TRUE(world.run(kLimit));
    EXPECT_TRUE(adaptations(world).empty()) << "seed " << seed;
  }
}

TEST_F(Adapting, NobodyWhoDidNotAskIsMoved) {
  config_.resilience.adapt = false;
  SimWorld world({config_, 1, Step(0), nullptr});
  ASSERT_TRUE(steps_done(world, 10));
  world.slow_down(HostId(1), 5);
  ASSERT_TRUE(world.run(kLimit));
  EXPECT_TRUE(world.events_of<Regrouped>().empty());
}

TEST_F(Adapting, HostsMayBeLostAndComeInTheMiddleOfIt) {
  config_.train.steps = 120;
  const auto expected = testing::serial_run(config_);
  std::size_t adapted = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto run = [&] {
      Random random(seed);
      auto world = std::make_unique<SimWorld>(SimJob{config_, seed, Step(0), nullptr});
      const HostId slow(static_cast<std::uint32_t>(random.below(4)));
      const HostId dies(static_cast<std::uint32_t>(random.below(4)));
      EXPECT_TRUE(steps_done(*world, 5 + random.below(20)));
      world->slow_down(slow, 2 + 3 * random.uniform());
      EXPECT_TRUE(steps_done(*world, 30 + random.below(30)));
      world->kill(dies);
      EXPECT_TRUE(steps_done(*world, 70 + random.below(20)));
      world->revive(dies);
      testing::expect_undisturbed(*world, config_, expected);
      return world;
    };
    const auto first = run();
    if (HasFailure()) return;
    EXPECT_EQ(first->trace_hash(), run()->trace_hash());
    adapted += adaptations(*first).size();
  }
  EXPECT_GE(adapted, 2U);
}

}  // namespace
}  // namespace holmes::actors
