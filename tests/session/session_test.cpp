// Goal: a program can train with nothing but the library: several sessions at once with agents in
// this process, stopped, resumed, looked at and abandoned, without a trace outside the run folder.
// Method: jobs of two hosts in real time over loopback, whose losses must have the same bits.
#include <csignal>

#include <gmock/gmock.h>

#include "holmes/base/clock.hpp"
#include "holmes/model/checkpoint.hpp"
#include "holmes/partition/simulate.hpp"
#include "session/small_job.hpp"
#include "support/temporary_folder.hpp"

namespace holmes::actors::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Sessions : public ::testing::Test {
 protected:
  JobConfig job(const std::string& name, std::uint64_t steps) const {
    return small_job(folder_.path(), name, steps);
  }

  const holmes::testing::TemporaryFolder folder_;
};

TEST_F(Sessions, TwoAtOnceInOneProcessTrainAsEachAlone) {
  std::vector<double> alone;
  {
    Local local(job("alone", 12));
    EXPECT_EQ(local.session->wait(), Outcome::kFinished);
    alone = local.record.losses();
  }
  ASSERT_EQ(alone.size(), 12U);
  EXPECT_LT(alone.back(), alone.front());
  Local first(job("first", 12));
  Local second(job("second", 12));
  EXPECT_EQ(first.session->wait(), Outcome::kFinished);
  EXPECT_EQ(second.session->wait(), Outcome::kFinished);
  EXPECT_EQ(first.record.losses(), alone);
  EXPECT_EQ(second.record.losses(), alone);
  EXPECT_THAT(first.record.saved(),
              ElementsAre(folder_.path() / "first/checkpoints/step-00000012"));
}

TEST_F(Sessions, PacedDevicesTakeTheTimeOfTheirSpeedAndMakeTheSameBits) {
  std::vector<double> as_fast_as_it_gets;
  {
    Local local(job("cpu", 4));
    ASSERT_EQ(local.session->wait(), Outcome::kFinished);
    as_fast_as_it_gets = local.record.losses();
  }
  auto paced = job("paced", 4);
  for (auto& host : paced.cluster.hosts) {
    host.devices[0].kind = "paced";
    host.devices[0].tflops = 1e-4;
  }
  const auto plan = plan_of(paced).value();
  const auto predicted = partition::simulate(plan, paced.cluster, model_cost(paced), {}).value();
  ASSERT_GT(predicted.step_s, 0.05) << "too short to be told from the time that it needs anyway";
  const SteadyClock clock;
  const TimePoint start = clock.now();
  Local local(paced);
  EXPECT_EQ(local.session->wait(), Outcome::kFinished);
  EXPECT_GE(seconds(clock.now() - start), 4 * 0.8 * predicted.step_s);
  EXPECT_EQ(local.record.losses(), as_fast_as_it_gets);
}

TEST_F(Sessions, DevicesThatNothingHereCanRunAreRefused) {
  auto gpus = job("gpus", 4);
  gpus.cluster.hosts[1].devices[0].kind = "a100";
  LocalAgents agents;
  SessionOptions options;
  options.job = gpus;
  options.starter = &agents;
  const auto session = start_session(std::move(options));
  ASSERT_FALSE(session);
  EXPECT_THAT(session.error().message(), HasSubstr("host b0"));
  EXPECT_THAT(session.error().message(), HasSubstr("\"a100\""));
}

TEST_F(Sessions, StopsWhenAskedAndGoesOnFromThere) {
  std::vector<double> whole;
  {
    Local local(job("whole", 40));
    ASSERT_EQ(local.session->wait(), Outcome::kFinished);
    whole = local.record.losses();
  }
  std::vector<double> parts;
  {
    Local local(job("parts", 40));
    ASSERT_TRUE(local.record.wait_for_steps(3));
    local.session->request_stop();
    local.session->request_stop();
    const auto outcome = local.session->wait();
    parts = local.record.losses();
    ASSERT_EQ(outcome, parts.size() == 40 ? Outcome::kFinished : Outcome::kInterrupted);
    EXPECT_EQ(local.record.saved().size(), 1U);
  }
  Local local(job("parts", 40), true);
  EXPECT_EQ(local.session->wait(), Outcome::kFinished);
  const auto rest = local.record.losses();
  parts.insert(parts.end(), rest.begin(), rest.end());
  EXPECT_EQ(parts, whole);
}

TEST_F(Sessions, HealthSaysHowFarItIs) {
  Local local(job("health", 1'000'000));
  ASSERT_TRUE(local.record.wait_for_steps(2));
  const Health training = local.session->health();
  EXPECT_EQ(training.phase, SessionPhase::kTraining);
  EXPECT_GE(training.steps_done, 2U);
  EXPECT_EQ(training.steps_total, 1'000'000U);
  EXPECT_THAT(training.members, ElementsAre("a0", "b0"));
  EXPECT_TRUE(training.loss && training.last_step_age);
  EXPECT_FALSE(training.outcome);
  local.session->request_stop();
  EXPECT_GE(local.session->health().phase, SessionPhase::kEnding);
  EXPECT_EQ(local.session->wait(), Outcome::kInterrupted);
  const Health over = local.session->health();
  EXPECT_EQ(over.phase, SessionPhase::kOver);
  EXPECT_EQ(over.outcome, Outcome::kInterrupted);
  EXPECT_EQ(over.steps_done, local.record.losses().size());
  EXPECT_EQ(over.checkpoint, local.record.saved().back());
}

TEST_F(Sessions, AHostThatLeavesIsNoMemberAnyMoreAndTheOtherGoesOn) {
  JobConfig flexible = job("leaves", 1'000'000);
  flexible.parallel.pipeline = 1;
  flexible.cluster.hosts[1].cluster = flexible.cluster.hosts[0].cluster;
  Local local(flexible);
  ASSERT_TRUE(local.record.wait_for_steps(2));
  local.agents.request_leave(HostId(1));
  for (std::size_t steps = 3; local.session->health().members.size() == 2; ++steps)
    ASSERT_TRUE(local.record.wait_for_steps(steps));
  ASSERT_TRUE(local.record.wait_for_steps(local.record.losses().size() + 2));
  EXPECT_THAT(local.session->health().members, ElementsAre("a0"));
  local.session->request_stop();
  EXPECT_EQ(local.session->wait(), Outcome::kInterrupted);
}

TEST_F(Sessions, ABadJobIsRefusedBeforeAnythingStarts) {
  LocalAgents agents;
  const auto refusal = [&](const JobConfig& bad) -> Error {
    SessionOptions options;
    options.job = bad;
    options.starter = &agents;
    const auto session = start_session(std::move(options));
    return session ? Error(ErrorCode::kInternal, "started") : session.error();
  };
  JobConfig steps = job("bad", 0);
  EXPECT_THAT(refusal(steps).message(), HasSubstr("[train] steps: 0 is out of range"));
  JobConfig heads = job("bad", 5);
  heads.model.heads = 5;
  EXPECT_THAT(refusal(heads).message(), HasSubstr("model.heads"));
  JobConfig text = job("bad", 5);
  text.data.text = folder_.path() / "nothing.txt";
  EXPECT_THAT(refusal(text).message(), HasSubstr("nothing.txt"));
  text.data.text.clear();
  EXPECT_THAT(refusal(text).message(), HasSubstr("data.text is not set"));
  JobConfig fabric = job("bad", 5);
  fabric.cluster.hosts[0].nics[0].fabric = FabricId(7);
  EXPECT_THAT(refusal(fabric).message(), HasSubstr("cluster: "));
  EXPECT_FALSE(std::filesystem::exists(steps.run.folder));
}

TEST_F(Sessions, OneThatIsAbandonedEndsItsAgentsAndSavesNothing) {
  const JobConfig abandoned = job("abandoned", 1'000'000);
  {
    Local local(abandoned);
    ASSERT_TRUE(local.record.wait_for_steps(2));
  }
  EXPECT_FALSE(model::find_latest(abandoned.run.folder / "checkpoints"));
  Local again(job("again", 3));  // nothing of the first one is in the way
  EXPECT_EQ(again.session->wait(), Outcome::kFinished);
}

TEST_F(Sessions, ChangeNoSignalHandlerAndWriteNothing) {
  const auto read_handlers = [] {
    std::vector<void (*)(int)> found;
    for (int signal = 1; signal < NSIG; ++signal) {
      struct sigaction action {};
      ::sigaction(signal, nullptr, &action);
      found.push_back(action.sa_handler);
    }
    return found;
  };
  const auto before = read_handlers();
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Outcome outcome{};
  {
    Local local(job("quiet", 3));
    outcome = local.session->wait();
    EXPECT_EQ(read_handlers(), before);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(outcome, Outcome::kFinished);
}

}  // namespace
}  // namespace holmes::actors::testing
