// Goal: health follows the events of a session, and what is ending never trains again.
// Method: events in the orders that sessions tell them, and a clock that is set.
#include "health_board.hpp"

#include <gmock/gmock.h>

namespace holmes::actors {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SetClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(Duration duration) { now_ += duration; }

 private:
  TimePoint now_;
};

partition::Cluster three_hosts() {
  partition::Cluster cluster;
  for (const char* name : {"a0", "a1", "b0"}) {
    partition::Host host;
    host.name = name;
    host.devices.resize(2);
    cluster.hosts.push_back(host);
  }
  return cluster;
}

/// Both devices of a0 and the first of b0 are in it.
PlanInForce plan_of_two_hosts(std::uint64_t first_step) {
  PlanInForce event;
  event.generation = Generation(1);
  event.first_step = Step(first_step);
  event.plan.stages = {{0, 1, {{DeviceId(0), {}}, {DeviceId(1), {}}, {DeviceId(4), {}}}}};
  return event;
}

StepFinished finished(std::uint64_t step, double loss) {
  StepFinished event;
  event.step = Step(step);
  event.loss = loss;
  return event;
}

class Board : public ::testing::Test {
 protected:
  SetClock clock_;
  HealthBoard board_{clock_, three_hosts(), 10};
};

TEST_F(Board, FollowsAJobFromItsStartToItsEnd) {
  EXPECT_EQ(board_.health().phase, SessionPhase::kStarting);
  EXPECT_EQ(board_.health().steps_total, 10U);
  board_.note(plan_of_two_hosts(4));
  Health health = board_.health();
  EXPECT_EQ(health.phase, SessionPhase::kTraining);
  EXPECT_EQ(health.steps_done, 4U);
  EXPECT_THAT(health.members, ElementsAre("a0", "b0"));
  EXPECT_FALSE(health.last_step_age);
  board_.note(finished(4, 2.5));
  clock_.advance(std::chrono::seconds(3));
  health = board_.health();
  EXPECT_EQ(health.steps_done, 5U);
  EXPECT_EQ(health.loss, 2.5);
  EXPECT_EQ(health.last_step_age, Duration(std::chrono::seconds(3)));
  board_.note(CheckpointSaved{Step(5), "run/checkpoints/step-00000005"});
  board_.over(Outcome::kFinished);
  health = board_.health();
  EXPECT_EQ(health.phase, SessionPhase::kOver);
  EXPECT_EQ(health.outcome, Outcome::kFinished);
  EXPECT_EQ(health.checkpoint, "run/checkpoints/step-00000005");
  EXPECT_THAT(health.members, IsEmpty());
}

TEST_F(Board, ALostHostIsNoMemberAndTheJobRegroups) {
  board_.note(plan_of_two_hosts(0));
  Incident incident;
  incident.host = "b0";
  incident.operation = "reduce of step 1";
  incident.goes_on = true;
  board_.note(incident);
  EXPECT_EQ(board_.health().phase, SessionPhase::kRegrouping);
  EXPECT_THAT(board_.health().members, ElementsAre("a0"));
  EXPECT_THAT(board_.health().incident, HasSubstr("reduce of step 1"));
  board_.note(plan_of_two_hosts(1));
  EXPECT_EQ(board_.health().phase, SessionPhase::kTraining);
  incident.goes_on = false;
  board_.note(incident);
  EXPECT_EQ(board_.health().phase, SessionPhase::kEnding);
}

TEST_F(Board, WhatEndsNeverTrainsAgain) {
  board_.stopping();
  board_.note(plan_of_two_hosts(0));
  EXPECT_EQ(board_.health().phase, SessionPhase::kEnding);
  board_.over(Outcome::kInterrupted);
  board_.stopping();
  EXPECT_EQ(board_.health().phase, SessionPhase::kOver);
}

TEST(HealthWords, HaveOneEach) {
  EXPECT_EQ(to_string(Outcome::kInterrupted), "interrupted");
  EXPECT_EQ(to_string(SessionPhase::kStarting), "starting");
  EXPECT_EQ(to_string(SessionPhase::kRegrouping), "regrouping");
  EXPECT_EQ(to_string(SessionPhase::kOver), "over");
}

}  // namespace
}  // namespace holmes::actors
