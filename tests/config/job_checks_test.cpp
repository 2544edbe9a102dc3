// Goal: values that do not fit together are refused before anything starts, with the place of the
// key that is at fault. Method: one job for each rule, by file and by --set.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holmes/actors/job_config.hpp"

namespace holmes::actors {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Misfit {
  const char* text;
  std::vector<std::string> overrides;
  const char* begins;
  const char* says;
};
class Misfits : public ::testing::TestWithParam<Misfit> {};

TEST_P(Misfits, AreRefused) {
  const auto job = parse_job(GetParam().text, "j", GetParam().overrides, "");
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(job.error().message(),
              AllOf(StartsWith(GetParam().begins), HasSubstr(GetParam().says)));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, Misfits,
    ::testing::Values(
        Misfit{"[model]\nchannels = 384\nheads = 5", {}, "j:3: ", "model.heads = 5"},
        Misfit{"", {"model.heads=7"}, "--set model.heads: ", "does not divide model.channels"},
        Misfit{"[model]\nfamily = \"llama\"\nkv_heads = 4", {}, "j:3: ", "model.kv_heads = 4"},
        Misfit{"[model]\nfamily = \"llama\"\nhead_channels = 33", {}, "j:3: ", "must be even"},
        Misfit{"[model]\nchannels = 384\nfeed_forward = 64",
               {},
               "j:3: ",
               "model.feed_forward is a key of Llama"},
        Misfit{"[model]\nheads = 6",
               {"model.head=untied"},
               "--set model.head: ",
               "the head of GPT-2 is tied"},
        Misfit{"[train]\nbatch = 9\nmicro_batch = 2", {}, "j:2: ", "must be a multiple of"},
        Misfit{"[train]\nbatch = 8",
               {"train.micro_batch=3"},
               "--set train.micro_batch: ",
               "train.batch = 8 must be a multiple"},
        Misfit{"[train]\nbatch = 12\nreduction_leaves = 8",
               {},
               "j:3: ",
               "must divide the 12 micro-batches"},
        Misfit{"[train]\nbatch = 12\nreduction_leaves = 3", {}, "j:3: ", "power of two"},
        Misfit{"[model]\nsequence = 64\n[train]\nsequence = 128",
               {},
               "j:4: ",
               "longer than model.sequence = 64"},
        Misfit{"[model]\nvocabulary = 100", {}, "j:2: ", "needs 256"},
        Misfit{"[parallel]\ntensor = 2",
               {},
               "j:2: ",
               "tensor groups stay within a host, but no host has over 1 device"},
        Misfit{"[parallel]\npipeline = 7", {}, "j:2: ", "7 stages, but model.layers = 6"},
        Misfit{"[parallel]\npipeline = 2", {}, "j:2: ", "only 1 device"},
        Misfit{"[parallel]\ndata = 2", {}, "j:2: ", "parallel.data = 2"},
        Misfit{"[train]\nlr = 1e-3\nlr_min = 1e-2", {}, "j:3: ", "lr_min is above train.lr"},
        Misfit{"[train]\nsteps = 10\nwarmup_steps = 20", {}, "j:3: ", "by default train.steps"},
        Misfit{"[train]\nsteps = 100\nwarmup_steps = 20",
               {"train.steps=10"},
               "--set train.steps: ",
               "lower train.warmup_steps too (0: no warm-up) or raise train.steps"},
        Misfit{"[train]\ndecay_steps = 5\nwarmup_steps = 20",
               {},
               "j:3: ",
               "is above train.decay_steps = 5; lower train.warmup_steps too (0: no warm-up) or "
               "raise train.decay_steps"},
        Misfit{"[resilience]\nheartbeat_ms = 400\ntimeout_ms = 500",
               {},
               "j:3: ",
               "less than two heartbeats"},
        Misfit{"[model]\nlayers = 4096\nchannels = 65536\nheads = 64",
               {},
               "j:3: ",
               "weights and gradients need"},
        Misfit{"[train]\nbatch = 1000000\nmicro_batch = 1000000",
               {},
               "j:3: ",
               "one activation of a micro-batch"}));

TEST(Defaults, FollowOtherKeys) {
  const auto job =
      parse_job("[model]\nsequence = 64\n[train]\nsteps = 7\nlr = 0.02\nbatch = 12", "j", {}, "");
  ASSERT_TRUE(job) << job.error().message();
  EXPECT_EQ(job->train.sequence, 64U);
  EXPECT_EQ(job->train.learning_rate.decay_steps, 7U);
  EXPECT_FLOAT_EQ(job->train.learning_rate.floor, 0.002F);
  EXPECT_EQ(job->train.shape.reduction_leaves, 4U);
}

}  // namespace
}  // namespace holmes::actors
