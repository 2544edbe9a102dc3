// Goal: a run folder keeps the job as it ran, --set included, so that it can go on the same, and
// what a resumed run changes is told. Method: write it, load it back, change it.
#include "effective_config.hpp"

#include <gmock/gmock.h>

#include "temporary_folder.hpp"

namespace holmes::launcher {
namespace {

class EffectiveConfig : public testing::Test {
 protected:
  EffectiveConfig() {
    write_file(folder_.path() / "text.txt", "In the beginning");
    write_file(job_file(), "[data]\ntext = \"text.txt\"\n[train]\nlr = 3e-3\n");
  }
  std::filesystem::path job_file() const { return folder_.path() / "job.toml"; }
  actors::JobConfig load(const std::vector<std::string>& overrides = {}) const {
    auto job = actors::load_job({job_file(), overrides});
    EXPECT_TRUE(job) << job.error().message();
    return job.value_or(actors::JobConfig{});
  }

  TemporaryFolder folder_;
};

TEST_F(EffectiveConfig, GoesOnAsItRan) {
  const auto run = RunFolder::open(folder_.path() / "run", RunStart::kFresh);
  ASSERT_TRUE(run) << run.error().message();
  const auto job = load({"train.batch=16", "train.lr=0.01", "parallel.alpha=1.5"});
  const auto changed = keep_effective(*run, job);
  ASSERT_TRUE(changed) << changed.error().message();
  EXPECT_TRUE(changed->empty());
  const auto again = actors::load_job({run->path() / "effective.toml", {}});
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->cluster, job.cluster);
  const auto repeated = keep_effective(*run, *again);
  ASSERT_TRUE(repeated);
  EXPECT_THAT(*repeated, testing::IsEmpty());
}

TEST_F(EffectiveConfig, WhatAResumedRunChangesIsTold) {
  const auto run = RunFolder::open(folder_.path() / "run", RunStart::kFresh);
  ASSERT_TRUE(run);
  ASSERT_TRUE(keep_effective(*run, load()));
  const auto changed =
      keep_effective(*run, load({"train.lr=0.01", "train.lr_min=0.0003", "run.keep=7"}));
  ASSERT_TRUE(changed);
  EXPECT_THAT(*changed,
              testing::UnorderedElementsAre("train.lr = 0.003 -> 0.01", "run.keep = 3 -> 7"));
}

}  // namespace
}  // namespace holmes::launcher
