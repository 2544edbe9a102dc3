// Goal: what must hold of every plan, with tensor groups, links, dead ports, odd facts and every
// rule for the split. Method: rapidcheck draws clusters and options and shrinks what fails.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "clusters.hpp"
#include "holmes/partition/plan.hpp"
#include "holmes/partition/plan_json.hpp"
#include "holmes/partition/reach.hpp"

namespace holmes::partition {
namespace {

/// Beside random_cluster(): more devices a host, little memory, facts, links and trunks.
Cluster odd_cluster() {
  Random random(*rc::gen::arbitrary<std::uint32_t>());
  Cluster cluster = random_cluster(random);
  const auto most = *rc::gen::inRange<std::uint32_t>(1, 9);
  for (Host& host : cluster.hosts) {
    host.devices.resize(1 + random.below(most), host.devices.front());
    for (Device& device : host.devices) device.memory_gib = 0.5 + random.uniform();
    for (Nic& nic : host.nics) {
      const NicKind kind = cluster.fabrics[nic.fabric.index()].kind;
      nic.port_up = kind == NicKind::kEthernet || random.chance(0.9);
      if (kind == NicKind::kInfiniBand && random.chance(0.3)) {
        nic.subnet = random.chance(0.5) ? "s0" : "s1";
      }
      if (kind == NicKind::kRoce && random.chance(0.3)) {
        nic.gid = random.chance(0.5) ? GidKind::kRoceV1 : GidKind::kRoceV2;
      }
    }
  }
  if (*rc::gen::arbitrary<bool>()) cluster.fabrics.back().trunk_gbit_s = 0.3;
  if (cluster.fabrics.size() > 2 && cluster.fabrics[0].kind == cluster.fabrics[1].kind &&
      *rc::gen::arbitrary<bool>()) {
    cluster.links.push_back({cluster.fabrics[0].name, cluster.fabrics[1].name, 0.5, 1000});
  }
  return cluster;
}

ModelCost some_model() {
  ModelCost model = small_model(*rc::gen::inRange<std::uint32_t>(1, 40));
  model.head_flops = *rc::gen::inRange(0, 1000);
  model.block_parameters = *rc::gen::inRange<std::uint64_t>(1, 4'000'000);
  model.edge_bytes = *rc::gen::inRange<std::uint64_t>(1, 10'000'000);
  return model;
}

PlanOptions some_options() {
  PlanOptions options;
  options.strategy = *rc::gen::element(Strategy::kHolmes, Strategy::kHolmes, Strategy::kMegatron);
  options.tensor = *rc::gen::element(1U, 1U, 2U, 3U, 4U);
  options.pipeline = *rc::gen::element(0U, 0U, 1U, 2U, 3U, 5U, 8U);
  options.data = *rc::gen::element(0U, 0U, 1U, 2U);
  options.split = *rc::gen::element(SplitRule::kDefault, SplitRule::kEqual, SplitRule::kFormula,
                                    SplitRule::kOptimal);
  return options;
}

/// Bytes that weights, gradients and moments alone take on each device of `stage`.
double state_bytes(const Plan& plan, const ModelCost& model, const StagePlan& stage) {
  const double blocks = stage.last_block - stage.first_block + 1;
  return blocks * static_cast<double>(model.block_parameters) *
         (8 + 8.0 / static_cast<double>(stage.shares.size())) / plan.tensor;
}

RC_GTEST_PROP(PlanProperty, HoldsForOddClusters, ()) {
  const Cluster cluster = odd_cluster();
  RC_PRE(validate(cluster).has_value());
  const ModelCost model = some_model();
  const PlanOptions options = some_options();
  const auto made = plan(cluster, model, {64, 1, 64}, options);
  RC_CLASSIFY(made.has_value(), "planned");
  if (!made) {
    RC_ASSERT(made.error().code() == ErrorCode::kInvalidArgument);
    RC_ASSERT(made.error().message().find('\n') == std::string::npos);
    return;
  }
  RC_ASSERT(validate(*made, cluster, model.blocks).has_value());

  // Every layer is on exactly one stage, every device in at most one share.
  std::uint32_t next = 0;
  std::set<DeviceId> seen;
  for (const StagePlan& stage : made->stages) {
    RC_ASSERT(stage.first_block == next);
    next = stage.last_block + 1;
    for (const Share& share : stage.shares) {
      RC_ASSERT(share.devices().size() == options.tensor);
      for (const DeviceId device : share.devices()) {
        RC_ASSERT(seen.insert(device).second);
        RC_ASSERT(cluster.host_of(device) == cluster.host_of(share.device));
        // No plan is over memory.
        RC_ASSERT(state_bytes(*made, model, stage) <=
                  cluster.device(device).memory_gib * 1024 * 1024 * 1024);
      }
    }
  }
  RC_ASSERT(next == model.blocks);

  // Groups of each kind but the tied partition the members; their fabrics join all their hosts.
  for (const GroupKind kind : {GroupKind::kData, GroupKind::kVote, GroupKind::kTensor}) {
    std::vector<DeviceId> members;
    for (const Group& group : made->groups) {
      if (group.kind != kind) continue;
      members.insert(members.end(), group.devices.begin(), group.devices.end());
    }
    std::sort(members.begin(), members.end());
    const bool none = kind == GroupKind::kTensor && options.tensor == 1;
    RC_ASSERT(members ==
              (none ? std::vector<DeviceId>{} : std::vector<DeviceId>(seen.begin(), seen.end())));
  }
  for (const Group& group : made->groups) {
    for (const FabricId fabric : group.paths) {
      for (const DeviceId device : group.devices) {
        const HostId a = cluster.host_of(group.devices.front());
        const HostId b = cluster.host_of(device);
        RC_ASSERT(a == b || route(cluster, a, b, fabric).has_value());
      }
    }
  }
  RC_ASSERT(!to_json(*made, cluster).empty());
  RC_ASSERT(!explain(*made, cluster).empty());
}

}  // namespace
}  // namespace holmes::partition
