#pragma once

// How fabrics are joined: which are one network through links, and by which links one gets from one
// to another. Built where it is needed; holds indices only.

#include <optional>
#include <vector>

#include "holmes/partition/cluster.hpp"

namespace holmes::partition {

/// Indices of the links that join `from` with `to`, fewest first, in order; empty when they are the
/// same fabric, nothing when no links join them.
std::optional<std::vector<std::size_t>> links_between(const Cluster& cluster, FabricId from,
                                                      FabricId to);

/// The NICs through which `host` takes part in `fabric`: those on it that are used and whose ports
/// are up, without one those on the first fabric linked to it. Rails whose facts contradict the
/// first are left out.
std::vector<NicId> rails(const Cluster& cluster, HostId host, FabricId fabric);

/// What separates two NICs whose fabrics are joined: subnets, kinds of GID. Nothing: they talk.
/// `routed`: a link lies between, so that subnets may differ.
std::optional<std::string> contradiction(const Cluster& cluster, const Nic& a, const Nic& b,
                                         bool routed);

/// Links that name the clusters of both hosts: all that two different clusters share.
std::vector<std::size_t> cluster_links(const Cluster& cluster, const std::string& a,
                                       const std::string& b);

}  // namespace holmes::partition
