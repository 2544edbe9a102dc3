// Goal: a job that a program builds from values is completed and checked as one from a file.
// Method: jobs with one thing left out or wrong.
#include <gmock/gmock.h>

#include "holmes/actors/job_config.hpp"

namespace holmes::actors {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string refusal(const JobConfig& job) {
  const auto checked = checked_job(job);
  return checked ? "accepted" : checked.error().message();
}

TEST(JobValues, DefaultsThatDependOnOthersAreFilledIn) {
  JobConfig job;
  job.train.steps = 77;
  job.train.shape = {16, 2, 0};
  job.run.folder = "relative/run";
  const auto checked = checked_job(job);
  ASSERT_TRUE(checked) << checked.error().message();
  EXPECT_EQ(checked->train.learning_rate.decay_steps, 77U);
  EXPECT_EQ(checked->train.shape.reduction_leaves, 8U);
  EXPECT_EQ(checked->cluster.device_count(), 1U);
  EXPECT_EQ(checked->run.folder, job.run.folder);
  const auto again = checked_job(*checked);
  ASSERT_TRUE(again);
  EXPECT_EQ(to_toml(*again), to_toml(*checked));
}

TEST(JobValues, RangesOfKeysHoldAndNoLineIsNamed) {
  JobConfig job;
  job.train.steps = 0;
  EXPECT_THAT(refusal(job), StartsWith("job: [train] steps: 0 is out of range"));
  job = {};
  job.data.validation = 2;
  EXPECT_THAT(refusal(job), StartsWith("job: [data] validation: 2 is out of range"));
}

TEST(JobValues, WhatMustHoldBetweenKeysHolds) {
  JobConfig job;
  job.train.shape = {7, 2, 0};
  EXPECT_THAT(refusal(job), AllOf(StartsWith("job: "), HasSubstr("batch")));
  job = {};
  job.model.heads = 5;
  EXPECT_THAT(refusal(job), AllOf(StartsWith("job: "), HasSubstr("model.heads")));
  job = {};
  job.train.sequence = 2 * job.model.sequence;
  EXPECT_THAT(refusal(job), HasSubstr("train.sequence"));
  job = {};
  job.parallel.pipeline = 4;  // one device
  EXPECT_THAT(refusal(job), StartsWith("job: "));
}

TEST(JobValues, AClusterThatIsNoneIsRefused) {
  JobConfig job;
  job.cluster.hosts = {{"a0", "", "", {{}}, {{"eth0", FabricId(3), 1, 1}}}};
  EXPECT_THAT(refusal(job), StartsWith("cluster: "));
  job.cluster.hosts = {{"a0", "", "", {}, {}}};
  EXPECT_THAT(refusal(job), StartsWith("cluster: "));
}

}  // namespace
}  // namespace holmes::actors
