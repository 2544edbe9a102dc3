// Goal: costs agree with what was measured and with counting by hand.
#include <gtest/gtest.h>

#include "holmes/actors/job_config.hpp"
#include "holmes/model/gpt.hpp"

namespace holmes::actors {
namespace {

TEST(ModelCost, BenchmarkShapeHas89MegaflopsAToken) {
  JobConfig job;
  job.model = {6, 6, 384, 256, 8192, 64};
  job.train.sequence = 256;
  const auto cost = model_cost(job);
  const double forward = cost.blocks * cost.block_flops + cost.head_flops;
  EXPECT_NEAR(3 * forward / job.train.sequence, 89.65e6, 0.01e6);
  EXPECT_EQ(cost.edge_bytes, 256U * 384 * 4);
}

TEST(ModelCost, CountsParameters) {
  JobConfig job;
  job.model = {2, 2, 8, 16, 250, 64};
  const auto cost = model_cost(job);
  EXPECT_EQ(cost.blocks, 2U);
  EXPECT_EQ(cost.block_parameters, 12U * 64 + 13 * 8);
  EXPECT_EQ(cost.embedding_parameters, (256U + 16) * 8);
  EXPECT_EQ(cost.head_parameters, 256U * 8 + 16);
}

TEST(ModelCost, AgreesWithTheLayers) {
  JobConfig job;
  job.model = {3, 2, 8, 16, 250, 64};
  job.train.sequence = 16;
  const auto engine = model::make_reference_engine();
  const auto layers = model::make_layers(job.model, model::whole_model(job.model),
                                         {1, job.train.sequence}, *engine);
  const auto cost = model_cost(job);
  ASSERT_EQ(layers.size(), 5U);
  EXPECT_EQ(layers[0]->parameter_count(), cost.embedding_parameters);
  EXPECT_EQ(layers[1]->parameter_count(), cost.block_parameters);
  EXPECT_EQ(layers[4]->parameter_count(), cost.head_parameters);
}

/// Four heads of 12 channels, wider than channels / heads, on two of keys and values.
JobConfig llama_job() {
  JobConfig job;
  job.model = {3, 4, 32, 16, 250, 64};
  job.model.family = model::Family::kLlama;
  job.model.kv_heads = 2;
  job.model.head_channels = 12;
  job.model.feed_forward = 40;
  job.train.sequence = 16;
  return job;
}

TEST(ModelCost, AgreesWithTheLayersOfLlama) {
  for (const auto head : {model::Head::kTied, model::Head::kUntied}) {
    JobConfig job = llama_job();
    job.model.head = head;
    const auto engine = model::make_cpu_engine();
    const auto layers = model::make_layers(job.model, model::whole_model(job.model),
                                           {1, job.train.sequence}, *engine);
    const auto cost = model_cost(job);
    ASSERT_EQ(layers.size(), 5U);
    EXPECT_EQ(layers[0]->parameter_count(), cost.embedding_parameters);
    EXPECT_EQ(layers[1]->parameter_count(), cost.block_parameters);
    EXPECT_EQ(layers[4]->parameter_count(), cost.head_parameters);
    EXPECT_EQ(layers[1]->forward_flops(), cost.block_flops);
    EXPECT_EQ(cost.tied_head, head == model::Head::kTied);
    EXPECT_EQ(cost.tied_parameters(), head == model::Head::kTied ? 256U * 32 : 0U);
  }
}

/// But for the rounding of each array to cache lines.
TEST(ModelCost, KnowsWhatTheCpuKernelsKeep) {
  JobConfig gpt2;
  gpt2.model = {3, 4, 32, 64, 250, 64};
  JobConfig llama = llama_job();
  llama.model.sequence = 64;
  for (JobConfig* job : {&gpt2, &llama}) {
    job->train.sequence = 64;
    const auto engine = model::make_cpu_engine();
    const auto block = engine->make_block(job->model, {1, job->train.sequence}, 0);
    EXPECT_EQ(block->stash_bytes(), model_cost(*job).block_stash_bytes);
  }
}

}  // namespace
}  // namespace holmes::actors
