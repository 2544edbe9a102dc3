#pragma once

// Which fabrics join some hosts, best first: the choice of NIC for each group and edge, made from
// what all hosts have and never by one end alone.

#include <string>
#include <vector>

#include "holmes/partition/cluster.hpp"
#include "holmes/partition/reach.hpp"

namespace holmes::partition {

struct PathChoice {
  std::vector<FabricId> paths;  ///< By goodput, then latency, then number; empty for one host.
  std::string reason;
};

/// kInvalidArgument that names two hosts and what each has when no fabric joins all of `hosts`
/// (any order, duplicates allowed). `what` says for whom, for example "stage 0's replicas".
Result<PathChoice> choose_paths(const Cluster& cluster, std::vector<HostId> hosts,
                                const std::string& what);

/// True when every host has a NIC on `fabric` through which it reaches the others.
bool joins(const Cluster& cluster, FabricId fabric, const std::vector<HostId>& hosts);

/// Goodput of the best fabric common to all, 0 if there is none.
double best_gbit_s(const Cluster& cluster, const std::vector<HostId>& hosts);

}  // namespace holmes::partition
