#pragma once

// Which devices make up each stage, by strategy.

#include <vector>

#include "holmes/partition/plan.hpp"

namespace holmes::partition {

/// Devices of each stage, in leaf order.
using Layout = std::vector<std::vector<DeviceId>>;

/// Clusters of the description: hosts by cluster name, in order of first appearance; hosts without
/// one belong to the cluster of their fastest fabric.
struct ClusterMembers {
  std::string name;
  std::vector<HostId> hosts;
  std::vector<DeviceId> devices;
};
std::vector<ClusterMembers> clusters_of(const Cluster& cluster);

/// Rank order, equal degrees.
Result<Layout> megatron_layout(const Cluster& cluster, const PlanOptions& options);

/// A stage is a cluster, a part of one where there are more stages than clusters, or neighbours
/// merged where there are fewer.
Result<Layout> holmes_layout(const Cluster& cluster, const PlanOptions& options);

}  // namespace holmes::partition
