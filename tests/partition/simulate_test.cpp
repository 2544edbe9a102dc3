// Goal: the simulator gives the times that can be worked out by hand, and orders plans, schedules
// and networks as they must be ordered. Method: pipelines of equal stages on hosts with fast NICs,
// beside formulas; then the same with one thing made slower.
#include "holmes/partition/simulate.hpp"

#include <numeric>

#include <gtest/gtest.h>

#include "clusters.hpp"

namespace holmes::partition {
namespace {

constexpr double kFast = 1e5;  // Gbit/s: transfers take next to nothing

/// `hosts` hosts with one device of 1 TFLOPS each, on one fabric.
Cluster one_fabric(std::uint32_t hosts, double gbit_s, double latency_us) {
  Cluster cluster;
  cluster.fabrics = {{"net", NicKind::kEthernet, gbit_s, latency_us}};
  for (std::uint32_t h = 0; h < hosts; ++h) {
    Host host{"h" + std::to_string(h), "c" + std::to_string(h), "", {}, {}};
    host.devices = {{"cpu", 1, 1, 64}};
    host.nics = {{"eth0", FabricId(0), gbit_s, latency_us}};
    cluster.hosts.push_back(host);
  }
  return cluster;
}

/// A block's forward pass takes 1 s on such a device for one sample; nothing else costs time.
ModelCost unit_model(std::uint32_t blocks) {
  ModelCost model;
  model.blocks = blocks;
  model.block_flops = 1e12;
  model.block_parameters = 1;
  model.edge_bytes = 1;
  return model;
}

Plan plan_of(const Cluster& cluster, const ModelCost& model, JobShape job,
             PlanOptions options = {}) {
  auto result = plan(cluster, model, job, options);
  EXPECT_TRUE(result) << (result ? "" : result.error().message());
  return *result;
}

Simulation run(const Plan& plan, const Cluster& cluster, const ModelCost& model,
               SimulateOptions options = {}) {
  options.cost.local_latency_us = 0;
  auto result = simulate(plan, cluster, model, options);
  EXPECT_TRUE(result) << (result ? "" : result.error().message());
  return *result;
}

TEST(Simulate, OneDeviceComputesAllTheTime) {
  const Cluster cluster = one_fabric(1, kFast, 0);
  const ModelCost model = unit_model(4);
  const Simulation result = run(plan_of(cluster, model, {8, 1, 1}), cluster, model);
  EXPECT_NEAR(result.step_s, 8 * 4 * 3, 1e-6);  // samples x blocks x (forward + backward)
  EXPECT_NEAR(result.samples_per_s, 1.0 / 12, 1e-9);
  EXPECT_NEAR(result.model_tflops_per_device, 1, 1e-6);
  EXPECT_NEAR(result.tflops_per_device, 4.0 / 3, 1e-6);  // the 96-style count
  EXPECT_TRUE(result.channels.empty());
}

/// Step of p equal stages of one block with m micro-batches: (m + p - 1) (forward + backward).
TEST(Simulate, TheBubbleOf1F1BAndGPipeIsThatOfTheFormula) {
  for (const std::uint32_t stages : {2U, 3U, 4U}) {
    const Cluster cluster = one_fabric(stages, kFast, 0);
    const ModelCost model = unit_model(stages);
    for (const ScheduleKind kind : {ScheduleKind::k1F1B, ScheduleKind::kGPipe}) {
      PlanOptions options;
      options.schedule = kind;
      const Simulation result = run(plan_of(cluster, model, {8, 1, 1}, options), cluster, model);
      EXPECT_NEAR(result.step_s, (8 + stages - 1) * 3, 1e-3) << to_string(kind);
    }
  }
}

TEST(Simulate, InterleavingDividesTheBubble) {
  const Cluster cluster = one_fabric(4, kFast, 0);
  const ModelCost model = unit_model(8);
  PlanOptions options;
  options.schedule = ScheduleKind::kInterleaved;
  options.chunks = 2;
  const Simulation result = run(plan_of(cluster, model, {8, 1, 1}, options), cluster, model);
  // Work of 8 micro-batches x 2 blocks x 3 s, and a bubble of (p - 1) x 6 s / chunks.
  EXPECT_NEAR(result.step_s, 48 + 3 * 6 / 2.0, 1e-3);
}

TEST(Simulate, ZeroBubbleFillsBubblesWithWeightGradients) {
  const Cluster cluster = one_fabric(4, kFast, 0);
  const ModelCost model = unit_model(4);
  PlanOptions options;
  const Simulation plain = run(plan_of(cluster, model, {12, 1, 1}, options), cluster, model);
  options.schedule = ScheduleKind::kZeroBubble;
  const Simulation filled = run(plan_of(cluster, model, {12, 1, 1}, options), cluster, model);
  EXPECT_NEAR(plain.step_s, 45, 1e-3);
  EXPECT_LE(filled.step_s, 45 - 5);  // of a bubble of 9 s a third of it is left in theory
  EXPECT_GE(filled.step_s, 36);
}

TEST(Simulate, EachDevicesTimesAddUpToTheStep) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    const Cluster cluster = random_cluster(random);
    ModelCost model = small_model(8);
    model.block_flops = 1e9;
    model.edge_bytes = 1 << 20;
    model.block_parameters = 1 << 20;
    PlanOptions options;
    options.schedule = static_cast<ScheduleKind>(random.below(2));
    const auto planned = plan(cluster, model, {32, 1, 8}, options);
    if (!planned) continue;
    SimulateOptions how;
    how.cost.overlapped_transfers = random.chance(0.5);
    how.cost.collective = random.chance(0.5) ? Collective::kRing : Collective::kDirect;
    how.cost.optimizer = static_cast<OptimizerKind>(random.below(3));
    how.steps = 3;
    const Simulation result = run(*planned, cluster, model, how);
    for (const DeviceTime& t : result.devices) {
      const double sum =
          t.forward_s + t.backward_s + t.optimizer_s + t.transfer_s + t.bubble_s + t.collective_s;
      EXPECT_NEAR(sum, result.step_s, 1e-9 + 1e-6 * result.step_s)
          << "round " << round << " stage " << t.stage.value();
    }
    // Nothing depends on anything but the arguments.
    EXPECT_EQ(run(*planned, cluster, model, how).commits_s, result.commits_s);
  }
}

TEST(Simulate, ActivationsCrossASlowNetworkInTheirTime) {
  // One micro-batch: forward, transfer, forward, backward, transfer, backward.
  const Cluster cluster = one_fabric(2, 0.008, 0);  // 1 MB/s
  ModelCost model = unit_model(2);
  model.edge_bytes = 500000;
  const Simulation result = run(plan_of(cluster, model, {1, 1, 1}), cluster, model);
  EXPECT_NEAR(result.step_s, 6 + 2 * 0.5, 1e-3);
  double bytes = 0;
  for (const ChannelUse& use : result.channels) {
    if (use.kind == ChannelUse::Kind::kSend) bytes += use.bytes;
  }
  EXPECT_NEAR(bytes, 1000000, 100);
}

TEST(Simulate, BlockingTransfersAreNeverFaster) {
  const Cluster cluster = one_fabric(3, 0.008, 1000);
  ModelCost model = unit_model(3);
  model.edge_bytes = 800000;
  const Plan planned = plan_of(cluster, model, {16, 1, 1});
  SimulateOptions options;
  const double overlapped = run(planned, cluster, model, options).step_s;
  options.cost.overlapped_transfers = false;
  EXPECT_GT(run(planned, cluster, model, options).step_s, overlapped * 1.05);
}

TEST(Simulate, DirectReductionSendsWhatTheFormulaSays) {
  // Two replicas: each sends half of the gradients, then half of the parameters: 2 (d-1)/d Phi.
  Cluster cluster = one_fabric(2, 0.008, 0);
  for (Host& host : cluster.hosts) host.cluster = "c";
  ModelCost model = unit_model(1);
  model.block_parameters = 250000;  // 1 MB
  SimulateOptions options;
  const Plan planned = plan_of(cluster, model, {2, 1, 2});
  ASSERT_EQ(planned.stages.size(), 1U);
  for (const Collective collective : {Collective::kDirect, Collective::kRing}) {
    options.cost.collective = collective;
    const Simulation result = run(planned, cluster, model, options);
    for (const ChannelUse& use : result.channels) EXPECT_NEAR(use.bytes, 1e6, 1);
    EXPECT_NEAR(result.step_s, 3 + 2 * 0.5, 0.01);
  }
}

TEST(Simulate, OverlapHidesReductionsBehindBackward) {
  Cluster cluster = one_fabric(2, 0.008, 0);
  for (Host& host : cluster.hosts) host.cluster = "c";
  ModelCost model = unit_model(8);
  model.block_parameters = 250000;
  const Plan planned = plan_of(cluster, model, {2, 1, 2});
  SimulateOptions options;
  const double overlapped = run(planned, cluster, model, options).step_s;
  options.cost.optimizer = OptimizerKind::kSharded;
  const double sharded = run(planned, cluster, model, options).step_s;
  options.cost.optimizer = OptimizerKind::kReplicated;
  const double replicated = run(planned, cluster, model, options).step_s;
  EXPECT_NEAR(sharded, 24 + 8, 0.1);     // 8 MB in all, half of it each way
  EXPECT_NEAR(overlapped, 24 + 1, 0.1);  // only the last bucket's reduction and gather are left
  EXPECT_GE(replicated, sharded - 0.1);
}

TEST(Simulate, TransfersThatShareATrunkWaitForEachOther) {
  // Two pipelines side by side whose activations cross one trunk.
  Cluster cluster = one_fabric(4, kFast, 0);
  for (std::size_t h = 0; h < 4; ++h) cluster.hosts[h].cluster = h < 2 ? "a" : "b";
  ModelCost model = unit_model(2);
  model.edge_bytes = 1000000;
  const Plan planned = plan_of(cluster, model, {2, 1, 2});
  ASSERT_EQ(planned.stages.size(), 2U);
  const double free_s = run(planned, cluster, model).step_s;
  cluster.fabrics[0].trunk_gbit_s = 0.008;  // 1 MB/s
  // The second payload waits 1 s behind the first on its way there; on the way back they no longer
  // meet.
  EXPECT_NEAR(run(planned, cluster, model).step_s, free_s + 3, 0.1);
}

TEST(Simulate, ALinkThatSlowsDownSlowsTheStepsAfterIt) {
  const Cluster cluster = one_fabric(2, 0.08, 0);  // 10 MB/s
  ModelCost model = unit_model(2);
  model.edge_bytes = 5000000;
  const Plan planned = plan_of(cluster, model, {1, 1, 1});
  SimulateOptions options;
  options.steps = 10;
  options.changes = {{SpeedChange::What::kFabric, 0, 40, 0.1}};
  const Simulation result = run(planned, cluster, model, options);
  EXPECT_NEAR(result.commits_s[0], 7, 0.01);
  EXPECT_NEAR(result.commits_s[4], 35, 0.01);
  EXPECT_NEAR(result.step_s, 6 + 2 * 5, 0.01);
  // A slow host does the same to computing.
  options.changes = {{SpeedChange::What::kHost, 1, 0, 0.5}};
  EXPECT_NEAR(run(planned, cluster, model, options).step_s, 7 + 3, 0.01);
}

TEST(Simulate, WithoutNicSelectionEverythingTakesTheCommonFabric) {
  const Cluster cluster = two_clusters();
  ModelCost model = small_model(4);
  model.block_flops = 1e10;
  model.block_parameters = 1 << 20;
  const Plan planned = plan_of(cluster, model, {8, 1, 8});
  SimulateOptions options;
  const Simulation chosen = run(planned, cluster, model, options);
  options.cost.nic_selection = false;
  const Simulation common = run(planned, cluster, model, options);
  EXPECT_GT(common.step_s, chosen.step_s * 1.01);
  for (const ChannelUse& use : common.channels) EXPECT_EQ(use.fabric, FabricId(2));
}

TEST(Simulate, AbsurdOptionsAreRefused) {
  const Cluster cluster = one_fabric(1, 1, 0);
  const ModelCost model = unit_model(1);
  const Plan planned = plan_of(cluster, model, {1, 1, 1});
  SimulateOptions options;
  options.steps = 0;
  EXPECT_FALSE(simulate(planned, cluster, model, options));
  options = {};
  options.cost.compute_efficiency = 0;
  EXPECT_FALSE(simulate(planned, cluster, model, options));
  options = {};
  options.changes = {{SpeedChange::What::kHost, 7, 0, 1}};
  EXPECT_FALSE(simulate(planned, cluster, model, options));
  options.changes = {{SpeedChange::What::kHost, 0, 0, 0}};
  EXPECT_FALSE(simulate(planned, cluster, model, options));
}

TEST(Memory, CountsWhatAStageHolds) {
  const Cluster cluster = one_fabric(2, 1, 0);
  ModelCost model = unit_model(2);
  model.block_parameters = 1000;
  model.edge_bytes = 10;
  model.block_stash_bytes = 100;
  model.block_selective_bytes = 50;
  const Plan planned = plan_of(cluster, model, {8, 1, 1});
  CostOptions options;
  const Share& share = planned.stages[0].shares[0];
  MemoryUse use = memory_use(planned, model, StageIndex(0), share, options);
  EXPECT_EQ(use.weights, 4000);
  EXPECT_EQ(use.gradients, 2 * 4000);  // one is filled while the sum before it is applied
  EXPECT_EQ(use.optimizer, 8000);
  EXPECT_EQ(use.activations, 2 * 100);  // two micro-batches in flight; inputs are buffers
  EXPECT_GT(use.buffers, 2 * 4000);     // what is updated is sent on
  options.exact = false;
  use = memory_use(planned, model, StageIndex(0), share, options);
  EXPECT_EQ(use.gradients, 4000);
  EXPECT_EQ(use.activations, 2 * 110);
  options.recompute = Recompute::kFull;
  use = memory_use(planned, model, StageIndex(0), share, options);
  EXPECT_EQ(use.activations, 2 * 10 + 100);
  options.element_bytes = 2;
  use = memory_use(planned, model, StageIndex(0), share, options);
  EXPECT_EQ(use.weights, 2000);
  EXPECT_EQ(use.optimizer, 12000);
}

TEST(Memory, SaysWhoIsShortAndByHowMuch) {
  Cluster cluster = one_fabric(2, 1, 0);
  ModelCost model = unit_model(2);
  model.block_parameters = 1 << 28;  // 1 GiB each
  const Plan planned = plan_of(cluster, model, {8, 1, 1});
  EXPECT_TRUE(check_memory(planned, cluster, model, {}));
  cluster.hosts[1].devices[0].memory_gib = 2;
  const Status status = check_memory(planned, cluster, model, {});
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message().find("device 1 (h1)"), std::string::npos);
  EXPECT_NE(status.error().message().find("and has 2 GiB"), std::string::npos)
      << status.error().message();
}

}  // namespace
}  // namespace holmes::partition
