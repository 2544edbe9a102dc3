#include "paths.hpp"

#include <algorithm>
#include <tuple>

#include "holmes/base/assert.hpp"
#include "text.hpp"

namespace holmes::partition {
namespace {

/// A fabric as the slowest NIC of a group sees it.
struct Candidate {
  FabricId fabric;
  double gbit_s = 0;
  double latency_us = 0;
};

std::vector<Candidate> common_fabrics(const Cluster& cluster, const std::vector<HostId>& hosts) {
  HOLMES_ASSERT(!hosts.empty(), "a group has hosts");
  std::vector<Candidate> candidates;
  for (const Nic& first : cluster.hosts[hosts.front().index()].nics) {
    const auto same = [&](const Candidate& c) { return c.fabric == first.fabric; };
    if (std::any_of(candidates.begin(), candidates.end(), same)) continue;  // another rail
    if (!joins(cluster, first.fabric, hosts)) continue;
    Candidate candidate{first.fabric, first.gbit_s, first.latency_us};
    for (const HostId host : hosts) {
      const NicId id = *cluster.nic_on(host, first.fabric);
      const Nic& nic = cluster.hosts[host.index()].nics[id.index()];
      candidate.gbit_s = std::min(candidate.gbit_s, nic.gbit_s);
      candidate.latency_us = std::max(candidate.latency_us, nic.latency_us);
    }
    candidates.push_back(candidate);
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::tuple(-a.gbit_s, a.latency_us, a.fabric) <
           std::tuple(-b.gbit_s, b.latency_us, b.fabric);
  });
  return candidates;
}

std::string describe(const Cluster& cluster, const Candidate& candidate) {
  const Fabric& fabric = cluster.fabrics[candidate.fabric.index()];
  return fabric.name + " (" + std::string(to_string(fabric.kind)) + ", " +
         number(candidate.gbit_s) + " Gbit/s, " + number(candidate.latency_us) + " us)";
}

/// "joins clusters a, b", or nothing where all hosts are of one cluster.
std::string crossing(const Cluster& cluster, const std::vector<HostId>& hosts) {
  std::vector<std::string> names;
  for (const HostId host : hosts) {
    const std::string& name = cluster.hosts[host.index()].cluster;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names.size() < 2 ? "" : "; joins clusters " + joined(names);
}

std::string explain(const Cluster& cluster, const std::vector<HostId>& hosts,
                    const std::vector<Candidate>& candidates) {
  std::string reason = describe(cluster, candidates.front());
  if (candidates.size() == 1) {
    reason += ": the only fabric common to its " + counted(hosts.size(), "host");
  } else {
    reason += ": the fastest of " + std::to_string(candidates.size()) + " common to its " +
              counted(hosts.size(), "host") + "; next is " + describe(cluster, candidates[1]);
  }
  return reason + crossing(cluster, hosts);
}

Error no_fabric(const Cluster& cluster, const std::vector<HostId>& hosts, const std::string& what) {
  const auto tell = [&](HostId a, HostId b, const std::string& why) {
    return Error(ErrorCode::kInvalidArgument,
                 what + ": hosts " + cluster.hosts[a.index()].name + " and " +
                     cluster.hosts[b.index()].name + " " + why + " (" + nics_of(cluster, a) + "; " +
                     nics_of(cluster, b) + "); give both a NIC on one fabric in the cluster file");
  };
  const HostId first = hosts.front();
  for (const HostId other : hosts) {
    if (other != first && common_fabrics(cluster, {first, other}).empty()) {
      return tell(first, other, "share no fabric");
    }
  }
  // Each host shares something with the first, but no fabric has them all: name who lacks the best.
  const FabricId best = common_fabrics(cluster, {first}).front().fabric;
  for (const HostId other : hosts) {
    if (!joins(cluster, best, {first, other})) {
      return tell(
          first, other,
          "share no fabric that all " + counted(hosts.size(), "host") + " of the group are on");
    }
  }
  assertion_failed("some host lacks a fabric", __FILE__, __LINE__, "");
}

}  // namespace

std::vector<HostId> hosts_by_device(const Cluster& cluster) {
  std::vector<HostId> hosts;
  hosts.reserve(cluster.device_count());
  for (std::uint32_t host = 0; host < cluster.hosts.size(); ++host) {
    hosts.insert(hosts.end(), cluster.hosts[host].devices.size(), HostId(host));
  }
  return hosts;
}

bool joins(const Cluster& cluster, FabricId fabric, const std::vector<HostId>& hosts) {
  const bool loopback = cluster.fabrics[fabric.index()].kind == NicKind::kLoopback;
  for (const HostId host : hosts) {
    if (!cluster.nic_on(host, fabric)) return false;
    // Loopback never leaves a machine.
    if (loopback &&
        cluster.hosts[host.index()].address != cluster.hosts[hosts.front().index()].address) {
      return false;
    }
  }
  return true;
}

double best_gbit_s(const Cluster& cluster, const std::vector<HostId>& hosts) {
  const auto candidates = common_fabrics(cluster, hosts);
  return candidates.empty() ? 0 : candidates.front().gbit_s;
}

Result<PathChoice> choose_paths(const Cluster& cluster, std::vector<HostId> hosts,
                                const std::string& what) {
  std::sort(hosts.begin(), hosts.end());
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  if (hosts.size() < 2) return PathChoice{{}, "all on one host: no network"};
  const auto candidates = common_fabrics(cluster, hosts);
  if (candidates.empty()) return no_fabric(cluster, hosts, what);
  PathChoice choice;
  for (const Candidate& candidate : candidates) choice.paths.push_back(candidate.fabric);
  choice.reason = explain(cluster, hosts, candidates);
  return choice;
}

}  // namespace holmes::partition
