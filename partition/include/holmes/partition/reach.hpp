#pragma once

// Which NICs reach which, and how fast: decided from the facts of both ends (kind, fabric or
// subnet, port state, GID kind, MTU), never from one end alone. Pure functions of the description;
// they prove nothing, since a fabric is believed only after a completed connection.

#include <optional>
#include <string>
#include <vector>

#include "holmes/partition/cluster.hpp"

namespace holmes::partition {

/// The host of each device, by rank.
std::vector<HostId> hosts_by_device(const Cluster& cluster);
/// Each device, by rank; the pointers are into `cluster`.
std::vector<const Device*> devices_by_rank(const Cluster& cluster);

/// The name of the host's cluster; without one, "on " and its fastest fabric.
std::string cluster_of(const Cluster& cluster, HostId host);

/// Why `a` cannot talk to `b`, for people; nothing when they can. Symmetric.
std::optional<std::string> why_unreachable(const Cluster& cluster, const Nic& a, const Nic& b);

/// What a transfer between two hosts meets when it takes a fabric.
struct Route {
  std::vector<NicId> from_nics = {};  ///< Rails, in order; both lists have at least one.
  std::vector<NicId> to_nics = {};
  double nic_gbit_s = 0;  ///< Of all rails together, the slower end's.
  double latency_us = 0;  ///< The slower end's, and the links'.
  double gbit_s = 0;      ///< Of a transfer that is alone: rails, trunk and links.
  /// What it shares with other transfers: a trunk when the hosts are of different clusters, and
  /// indices into Cluster::links. One fabric's trunk at each end when fabrics are linked.
  std::vector<FabricId> trunks = {};
  std::vector<std::size_t> links = {};
  std::uint32_t mtu_bytes = 0;  ///< The smaller end's; 0: not known.
};
/// Nothing when the hosts do not reach each other on `fabric` (or a fabric linked to it).
std::optional<Route> route(const Cluster& cluster, HostId from, HostId to, FabricId fabric);

}  // namespace holmes::partition
