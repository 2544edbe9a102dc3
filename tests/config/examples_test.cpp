// Goal: the examples load, are one job on two clusters of hosts, and plan as the README says.
// Method: load them with a text of our own.
#include <gtest/gtest.h>

#include "holmes/actors/job_config.hpp"
#include "support/temporary_folder.hpp"

namespace holmes::actors {
namespace {

const std::filesystem::path kExamples = HOLMES_EXAMPLES;

JobConfig load_example(const char* name, const testing::TemporaryFolder& folder) {
  const auto text = folder.write("text.txt", "In the beginning");
  auto job = load_job({kExamples / name, {"data.text=" + text.string()}});
  EXPECT_TRUE(job) << job.error().message();
  return job ? *job : JobConfig{};
}

TEST(Examples, AreTheSameJob) {
  const testing::TemporaryFolder folder;
  const JobConfig one = load_example("one-host.toml", folder);
  const JobConfig two = load_example("two-clusters.toml", folder);
  EXPECT_EQ(one.model, two.model);
  EXPECT_EQ(one.train.shape, two.train.shape);
  EXPECT_EQ(one.train.steps, two.train.steps);
  EXPECT_EQ(one.train.sequence, two.train.sequence);
  EXPECT_EQ(one.train.seed, two.train.seed);
  EXPECT_EQ(one.train.learning_rate.peak, two.train.learning_rate.peak);
  EXPECT_EQ(one.train.learning_rate.floor, two.train.learning_rate.floor);
  EXPECT_EQ(one.train.learning_rate.warmup_steps, two.train.learning_rate.warmup_steps);
  EXPECT_EQ(one.data.validation, two.data.validation);
  EXPECT_NE(one.run.folder, two.run.folder);
}

TEST(Examples, TwoClustersAreTwoStagesOfTwoReplicas) {
  const testing::TemporaryFolder folder;
  const JobConfig job = load_example("two-clusters.toml", folder);
  ASSERT_EQ(job.cluster.hosts.size(), 4U);
  EXPECT_EQ(job.cluster.hosts[3].name, "b1");
  const auto plan = partition::plan(job.cluster, model_cost(job), job.train.shape, job.parallel);
  ASSERT_TRUE(plan) << plan.error().message();
  ASSERT_EQ(plan->stages.size(), 2U);
  EXPECT_EQ(plan->stages[0].shares.size(), 2U);
  const auto fabric = [&](FabricId id) { return job.cluster.fabrics[id.index()].name; };
  EXPECT_EQ(fabric(plan->groups[0].paths.front()), "ib-a");
  EXPECT_EQ(fabric(plan->groups[1].paths.front()), "roce-b");
  EXPECT_EQ(fabric(plan->edges[0].paths.front()), "ethernet");
}

TEST(Examples, NicEnvironmentsAreEightHostsWhoseGradientsHolmesKeepsOffEthernet) {
  const testing::TemporaryFolder folder;
  const auto text = folder.write("text.txt", "In the beginning");
  for (const char* environment :
       {"infiniband", "roce", "ethernet", "hybrid", "by-turns", "joined"}) {
    const auto job = load_job(
        {kExamples / "nic-environments/job.toml",
         {"data.text=" + text.string(),
          "cluster.file=" +
              (kExamples / "nic-environments" / (environment + std::string(".toml"))).string()}});
    ASSERT_TRUE(job) << environment << ": " << job.error().message();
    EXPECT_EQ(job->cluster.hosts.size(), 8U) << environment;
    for (const auto& host : job->cluster.hosts) EXPECT_TRUE(host.devices[0].is_paced());
    const auto plan =
        partition::plan(job->cluster, model_cost(*job), job->train.shape, job->parallel);
    ASSERT_TRUE(plan) << environment << ": " << plan.error().message();
    for (const auto& group : plan->groups) {
      if (group.kind != partition::GroupKind::kData) continue;
      const auto& fabric = job->cluster.fabrics[group.paths.front().index()].name;
      EXPECT_EQ(fabric == "ethernet", environment == std::string("ethernet")) << environment;
    }
  }
}

TEST(Examples, TheBpeJobTrainsOnTokensWithTheirTokenizer) {
  const testing::TemporaryFolder folder;
  folder.write("set.bin", "");
  const auto prefix = folder.write("set.idx", "").replace_extension();
  const auto job = load_job({kExamples / "bpe.toml", {"data.tokens=" + prefix.string()}});
  ASSERT_TRUE(job) << job.error().message();
  EXPECT_EQ(job->data.text, "");
  EXPECT_EQ(std::filesystem::path(job->data.tokenizer).filename(), "tokenizer.json");
  EXPECT_EQ(job->model.vocabulary, 2048U);
}

TEST(Examples, LlamaSharesKeysAndValuesAndTiesNothing) {
  const testing::TemporaryFolder folder;
  const JobConfig job = load_example("llama.toml", folder);
  EXPECT_EQ(job.model.family, model::Family::kLlama);
  EXPECT_EQ(job.model.kv_head_count(), 2U);
  const auto plan = plan_of(job);
  ASSERT_TRUE(plan) << plan.error().message();
  ASSERT_EQ(plan->stages.size(), 2U);
  for (const auto& group : plan->groups) EXPECT_NE(group.kind, partition::GroupKind::kTied);
}

TEST(Examples, OneHostIsOneStage) {
  const testing::TemporaryFolder folder;
  const JobConfig job = load_example("one-host.toml", folder);
  EXPECT_EQ(job.cluster.device_count(), 1U);
}

}  // namespace
}  // namespace holmes::actors
