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

}  // namespace
}  // namespace holmes::actors
