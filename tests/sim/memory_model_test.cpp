// Goal: the planner's memory model says what training reserves, so that what it lets through starts
// and what it refuses would not have. Method: real agents in simulation reserve memory for layouts
// of all kinds; the model's figure for each host beside it.
#include <gtest/gtest.h>

#include "holmes/partition/cost.hpp"
#include "sim/sim_job.hpp"

namespace holmes::actors {
namespace {

class MemoryModel : public testing::SimJobTest {
 protected:
  /// Large enough that rounding of buffers to pages, and of shards to chunks of 64 Ki elements,
  /// does not matter. Nothing of it is computed.
  JobConfig larger_job(std::uint32_t clusters, std::uint32_t hosts) const {
    JobConfig config = job(clusters, hosts);
    config.model = {4, 4, 320, 64, 256, 64};
    config.train.sequence = 64;
    config.train.steps = 1;
    config.data.validate_every = 0;
    return config;
  }

  /// The simulated agents compute with the reference engine, which keeps other things than the
  /// CPU's kernels, whose stash the planner counts.
  static partition::ModelCost cost_of(const JobConfig& config) {
    partition::ModelCost cost = model_cost(config);
    const auto engine = model::make_reference_engine();
    const model::MicroBatchShape one{1, config.train.sequence};
    cost.block_stash_bytes = engine->make_block(config.model, one, 0)->stash_bytes();
    cost.head_stash_bytes = engine->make_head(config.model, one)->stash_bytes();
    return cost;
  }

  /// With copies on other hosts, and without.
  void compare(JobConfig config) {
    for (const auto on_loss : {OnLoss::kContinue, OnLoss::kStop}) {
      config.resilience.on_loss = on_loss;
      compare_one(config);
    }
  }

  void compare_one(const JobConfig& config) {
    SimWorld world({config, 1, Step(0), nullptr});
    const auto all_reserved = [&] {
      for (std::uint32_t h = 0; h < config.cluster.hosts.size(); ++h)
        if (world.memory(HostId(h)).bytes_held == 0) return false;
      return true;
    };
    ASSERT_TRUE(world.run_until(all_reserved, testing::kLimit));
    const auto plan = plan_of(config);
    ASSERT_TRUE(plan);
    partition::CostOptions options;
    options.copies = config.resilience.on_loss == OnLoss::kContinue;
    const auto expected =
        partition::memory_by_host(*plan, config.cluster, cost_of(config), options);
    for (std::uint32_t h = 0; h < config.cluster.hosts.size(); ++h) {
      const auto reserved = static_cast<double>(world.memory(HostId(h)).bytes_held);
      const double ratio = expected[h].use.total() / reserved;
      // Never less than is reserved, but for rounding; not much more either.
      EXPECT_GT(ratio, 0.94) << "host " << h << " reserves " << reserved;
      EXPECT_LT(ratio, 1.10) << "host " << h << " reserves " << reserved;
    }
  }
};

TEST_F(MemoryModel, OfOneHost) {
  compare(larger_job(1, 1));
}

TEST_F(MemoryModel, OfReplicas) {
  for (const std::uint32_t leaves : {2U, 8U}) {
    JobConfig config = larger_job(1, 2);
    config.train.shape = {8, 1, leaves};
    compare(config);
  }
}

TEST_F(MemoryModel, OfLlamaWithEitherHead) {
  for (const auto head : {model::Head::kUntied, model::Head::kTied})
    for (const auto& [clusters, hosts] : {std::pair{1U, 1U}, {1U, 2U}, {3U, 1U}, {2U, 2U}}) {
      JobConfig config = larger_job(clusters, hosts);
      config.model.family = model::Family::kLlama;
      config.model.kv_heads = 2;
      config.model.feed_forward = 800;
      config.model.head = head;
      compare(config);
    }
}

TEST_F(MemoryModel, OfUnevenReplicas) {
  JobConfig config = larger_job(1, 3);
  config.train.shape = {16, 1, 8};
  compare(config);
}

TEST_F(MemoryModel, OfPipelines) {
  for (const auto schedule : {partition::ScheduleKind::k1F1B, partition::ScheduleKind::kGPipe}) {
    JobConfig config = larger_job(3, 1);
    config.parallel.schedule = schedule;
    compare(config);
  }
}

TEST_F(MemoryModel, OfPipelinesOfReplicas) {
  JobConfig config = larger_job(2, 2);
  config.train.shape = {16, 2, 8};
  compare(config);
}

TEST_F(MemoryModel, OfSeveralDevicesOfAHost) {
  JobConfig config = larger_job(2, 1);
  for (auto& host : config.cluster.hosts) host.devices.push_back(host.devices.front());
  compare(config);
}

}  // namespace
}  // namespace holmes::actors
