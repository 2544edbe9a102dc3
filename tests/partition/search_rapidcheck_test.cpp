// Goal: auto is within 1 % of the best of everything that its cost model knows under published
// schedules, only faster with generated orders, keeps to the memory, and is never slower than
// holmes; what is known of holmes beside the baselines holds.
// Method: rapidcheck draws small clusters beside a search without any cleverness, and larger ones
// beside the strategies. Cases grow with rapidcheck's size: up to 4 devices at the size that CI
// runs, 6 devices and 6 blocks at 100 (RC_PARAMS=max_size=100), where the budget of the search can
// end before it has seen the best plan.
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "brute_force.hpp"
#include "clusters.hpp"

namespace holmes::partition {
namespace {

constexpr int kDevicesMax = 6;
constexpr std::uint32_t kBlocksMax = 6;

/// A cluster of at most `devices` devices, now and then with little memory.
Cluster small_cluster(std::size_t devices) {
  Random random(*rc::gen::arbitrary<std::uint32_t>());
  Cluster cluster = random_cluster(random);
  while (cluster.device_count() > devices) {
    if (cluster.hosts.back().devices.size() > 1) {
      cluster.hosts.back().devices.pop_back();
    } else {
      cluster.hosts.pop_back();
    }
  }
  if (random.chance(0.3)) {
    for (Host& host : cluster.hosts) {
      for (Device& device : host.devices) device.memory_gib = 0.02 + 0.1 * random.uniform();
    }
  }
  return cluster;
}

RC_GTEST_PROP(SearchProperty, AutoIsWithinOnePercentOfTheOptimum, ()) {
  const int size = *rc::gen::withSize([](int now) { return rc::gen::just(now); });
  Random random(*rc::gen::arbitrary<std::uint32_t>());
  const auto most = static_cast<std::uint64_t>(std::min(kDevicesMax, 2 + size / 20));
  const auto devices = static_cast<std::size_t>(1 + random.below(most));
  const Cluster cluster = small_cluster(devices);
  const auto blocks = static_cast<std::uint32_t>(1 + random.below(kBlocksMax));
  const ModelCost model = random_model(random, blocks);
  const JobShape job = *checked_shape({8, 1, 1U << random.below(4)});
  SearchOptions published;
  published.order = false;  // generated orders are not among what is tried one by one
  const auto found = search(cluster, model, job, published);
  const double best = BruteForce(cluster, model, job).best();
  RC_TAG(cluster.device_count());
  RC_ASSERT(found.has_value() == std::isfinite(best));
  if (!found) return;
  RC_ASSERT(found->predicted.step_s <= 1.01 * best);
  RC_ASSERT(found->predicted.step_s >= best * (1 - 1e-9));
  RC_ASSERT(validate(found->plan, cluster, model.blocks).has_value());
  RC_ASSERT(check_memory(found->plan, cluster, model, found->cost).has_value());
  const auto ordered = search(cluster, model, job, {});
  RC_ASSERT(ordered.has_value());
  RC_ASSERT(ordered->predicted.step_s <= found->predicted.step_s * (1 + 1e-9));
  RC_ASSERT(check_memory(ordered->plan, cluster, model, ordered->cost).has_value());
}

/// Clusters of 2 to 4 equal hosts each: InfiniBand or RoCE inside, a slow Ethernet for all. Equal
/// devices: what is compared is the network.
Cluster mixed_nics() {
  Random random(*rc::gen::arbitrary<std::uint32_t>());
  Cluster cluster;
  cluster.fabrics = {{"ethernet", NicKind::kEthernet, 1, 50}};
  const auto clusters = static_cast<std::uint32_t>(1 + random.below(3));
  const auto hosts = 2 + random.below(3);
  const auto devices = 1 + random.below(3);
  for (std::uint32_t c = 0; c < clusters; ++c) {
    const std::string name = "c" + std::to_string(c);
    const double gbit_s = 4 + 12 * random.uniform();
    const NicKind kind = random.chance(0.5) ? NicKind::kInfiniBand : NicKind::kRoce;
    cluster.fabrics.push_back({"fast-" + name, kind, gbit_s, 5});
    for (std::uint64_t h = 0; h < hosts; ++h) {
      Host host{name + "-" + std::to_string(h), name, "", {}, {}};
      host.devices.assign(devices, {"cpu", 1, 0.5, 4});
      host.nics = {{"fast0", FabricId(c + 1), gbit_s, 5}, {"eth0", FabricId(0), 1, 50}};
      cluster.hosts.push_back(std::move(host));
    }
  }
  return cluster;
}

ModelCost training_model() {
  Random random(*rc::gen::arbitrary<std::uint32_t>());
  ModelCost model = random_model(random, static_cast<std::uint32_t>(6 + random.below(12)));
  model.block_flops = 1e8 + 4e9 * random.uniform();
  return model;
}

/// The same arithmetic for all, so that placement, overlap and NICs are what is compared.
CostOptions as_published() {
  CostOptions cost;
  cost.element_bytes = 2;
  cost.exact = false;
  cost.collective = Collective::kRing;
  return cost;
}

RC_GTEST_PROP(SearchProperty, AutoIsNeverSlowerThanHolmesNorHolmesThanTheBaselines, ()) {
  const Cluster cluster = mixed_nics();
  const ModelCost model = training_model();
  const JobShape job{48, 1, 48};
  SearchOptions options;
  options.cost = as_published();
  options.plan.strategy = Strategy::kHolmes;
  const auto holmes = predict(cluster, model, job, options);
  RC_PRE(holmes.has_value());
  options.plan.strategy = Strategy::kAuto;
  const auto best = predict(cluster, model, job, options);
  RC_ASSERT(best.has_value());
  RC_ASSERT(best->predicted.step_s <= holmes->predicted.step_s * (1 + 1e-9));
  // The baselines with as many stages: what they place where, and over which NICs.
  options.plan.pipeline = static_cast<std::uint32_t>(holmes->plan.stages.size());
  for (const Strategy strategy :
       {Strategy::kMegatronLm, Strategy::kMegatronDeepspeed, Strategy::kMegatronLlama}) {
    options.plan.strategy = strategy;
    const auto baseline = predict(cluster, model, job, options);
    if (!baseline) continue;
    RC_ASSERT(holmes->predicted.step_s <= baseline->predicted.step_s * (1 + 1e-9));
  }
}

}  // namespace
}  // namespace holmes::partition
