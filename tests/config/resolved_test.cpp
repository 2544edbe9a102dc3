// Goal: agents get exactly the job that the coordinator has. Method: write a job with values that
// are hard to print, read it back, compare the texts and the values that decide bits.
#include <gtest/gtest.h>

#include "holmes/actors/job_config.hpp"

namespace holmes::actors {
namespace {

TEST(ResolvedJob, ComesBackAsItWas) {
  JobConfig job;
  job.run.name = "a \"quoted\" \\ name";
  job.data.text = "/some/where/text with spaces.txt";
  job.train.learning_rate.peak = 0.1F / 3;
  job.train.optimizer.epsilon = 1.1e-9F;
  job.train.seed = 8'999'999'999'999'999;
  job.train.shape = {16, 2, 8};
  job.train.learning_rate.decay_steps = 77;
  job.parallel.alpha = 1.05;
  job.cluster.fabrics = {{"ib-a", partition::NicKind::kInfiniBand, 1.0 / 3, 20.5}};
  job.cluster.hosts = {{"a0", "a", "", {{"cpu", 2, 0.1, 3.5}}, {{"ib0", FabricId(0), 0.7, 1.25}}},
                       {"a1", "a", "", {{"cpu", 1, 0.3, 4}}, {{"ib0", FabricId(0), 0.5, 20.5}}}};
  job.data.tokenizer = "/some/where/tokenizer.json";
  const auto back = parse_resolved_job(to_toml(job), to_toml(job.cluster));
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(to_toml(*back), to_toml(job));
  EXPECT_EQ(back->cluster, job.cluster);
  EXPECT_EQ(back->run.name, job.run.name);
  EXPECT_EQ(back->data.text, job.data.text);
  EXPECT_EQ(back->train.learning_rate.peak, job.train.learning_rate.peak);
  EXPECT_EQ(back->train.optimizer.epsilon, job.train.optimizer.epsilon);
  EXPECT_EQ(back->train.seed, job.train.seed);
  EXPECT_EQ(back->train.shape, job.train.shape);
  EXPECT_EQ(back->parallel.alpha, job.parallel.alpha);
}

TEST(ResolvedJob, IsCheckedAgain) {
  JobConfig job;
  job.cluster.hosts = {{"a0", "", "", {{}}, {}}};
  EXPECT_FALSE(parse_resolved_job("[train]\nbatch = -1\n", to_toml(job.cluster)));
  EXPECT_FALSE(parse_resolved_job(to_toml(job), "nonsense"));
}

}  // namespace
}  // namespace holmes::actors
