// Goal: measured steps stand beside what the simulator predicts for the plan in force: the median,
// without the first step, of the last plan only. Method: events with durations that are known.
#include "foresight.hpp"

#include <gmock/gmock.h>

#include "holmes/partition/search.hpp"
#include "sample_events.hpp"

namespace holmes::launcher {
namespace {

using testing::HasSubstr;

actors::JobConfig sample_job() {
  actors::JobConfig job;
  job.model.layers = 2;
  job.cluster = two_hosts();
  return job;
}

TEST(StepTimes, AreTheMedianBesideThePrediction) {
  const auto job = sample_job();
  StepTimesTracker tracker(job);
  EXPECT_FALSE(tracker.times());
  tracker.on_event(plan_from(0));
  double duration_s = 99;  // the first step waits for everything
  for (std::uint64_t step = 0; step < 6; ++step) {
    tracker.on_event(step_finished(step, 3, duration_s));
    duration_s = 0.1 * static_cast<double>(step + 1);
  }
  const auto times = tracker.times();
  ASSERT_TRUE(times);
  EXPECT_EQ(times->steps, 5U);
  EXPECT_NEAR(times->measured_s, 0.3, 1e-9);
  partition::SimulateOptions how;
  const auto expected =
      partition::simulate(two_stages(), job.cluster, actors::model_cost(job), how);
  EXPECT_EQ(times->predicted_s, expected->step_s);
  EXPECT_FALSE(times->calibrated);
  EXPECT_THAT(step_times_text(*times), HasSubstr("median of 5 steps"));
  EXPECT_THAT(step_times_text(*times), HasSubstr("not calibrated"));
}

TEST(StepTimes, AnotherPlanBeginsAnew) {
  auto job = sample_job();
  job.cost.compute_efficiency = 0.5;
  StepTimesTracker tracker(job);
  tracker.on_event(plan_from(0));
  for (std::uint64_t step = 0; step < 6; ++step) tracker.on_event(step_finished(step, 3, 1));
  tracker.on_event(plan_from(6));
  EXPECT_FALSE(tracker.times());
  for (std::uint64_t step = 6; step < 10; ++step) tracker.on_event(step_finished(step, 3, 2));
  const auto times = tracker.times();
  ASSERT_TRUE(times);
  EXPECT_EQ(times->steps, 3U);
  EXPECT_EQ(times->measured_s, 2);
  EXPECT_THAT(step_times_text(*times), testing::Not(HasSubstr("not calibrated")));
}

TEST(CheckFits, LeavesWhatCannotBePlannedToOthers) {
  auto job = sample_job();
  job.parallel.pipeline = 7;
  EXPECT_TRUE(check_fits(job));
  job.parallel.pipeline = 0;
  EXPECT_TRUE(check_fits(job));
  job.parallel.pipeline = 2;
  job.parallel.strategy = partition::Strategy::kMegatron;
  job.cluster.hosts[1].devices[0].memory_gib = 0.038;
  const auto fits = check_fits(job);
  ASSERT_FALSE(fits);
  EXPECT_THAT(fits.error().message(), HasSubstr("host b0"));
}

}  // namespace
}  // namespace holmes::launcher
