#pragma once

// Which devices make up each stage, by strategy.

#include <string>
#include <vector>

#include "holmes/partition/plan.hpp"

namespace holmes::partition {

/// What computes one replica's share: a tensor group, consecutive devices of one host.
using Unit = std::vector<DeviceId>;
/// Units of each stage, in leaf order.
using Layout = std::vector<std::vector<Unit>>;

/// Clusters of the description: hosts by cluster name, in order of first appearance; hosts without
/// one belong to the cluster of their fastest fabric. Each host's devices are cut into units of
/// `tensor` devices, in rank order; what is left over is in none.
struct ClusterMembers {
  std::string name;
  std::vector<HostId> hosts;
  std::vector<Unit> units;
};
std::vector<ClusterMembers> clusters_of(const Cluster& cluster, std::uint32_t tensor);

/// Merges members until `count` are left, first those that the fastest fabric joins, of equal ones
/// the smallest: so that as few as possible must sum gradients over a slow fabric.
void merge_to(const Cluster& cluster, std::size_t count, std::vector<ClusterMembers>& members);

/// Puts members next to those that the fastest fabrics join them to, where that is better than the
/// order of the description: neighbours exchange activations.
void order_for_edges(const Cluster& cluster, std::vector<ClusterMembers>& members);

/// Rank order, equal degrees: the published formulas.
Result<Layout> megatron_layout(const Cluster& cluster, const PlanOptions& options);

/// A stage is a cluster, a part of one where there are more stages than clusters, or several merged
/// where there are fewer.
Result<Layout> holmes_layout(const Cluster& cluster, const PlanOptions& options);

}  // namespace holmes::partition
