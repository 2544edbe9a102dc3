#include "paths.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "holmes/base/assert.hpp"
#include "network.hpp"
#include "text.hpp"

namespace holmes::partition {
namespace {

/// A fabric as the slowest host of a group sees it.
struct Candidate {
  FabricId fabric;
  double gbit_s = 0;
  double latency_us = 0;
  std::size_t rails = 0;  ///< Fewest NICs of any host.
};

/// What lies between the hosts of a group beyond their NICs: trunks and links of several clusters.
void add_crossing(const Cluster& cluster, const std::vector<HostId>& hosts, Candidate& candidate) {
  const auto fabric_of = [&](HostId host) {
    const auto mine = rails(cluster, host, candidate.fabric);
    return cluster.hosts[host.index()].nics[mine.front().index()].fabric;
  };
  std::vector<HostId> different;  // one host of each cluster and fabric
  std::set<std::pair<std::string, FabricId>> seen;
  for (const HostId host : hosts) {
    if (seen.emplace(cluster_of(cluster, host), fabric_of(host)).second) different.push_back(host);
  }
  for (std::size_t i = 1; i < different.size(); ++i) {
    const auto between = route(cluster, different[i - 1], different[i], candidate.fabric);
    if (!between) continue;
    candidate.gbit_s = std::min(candidate.gbit_s, between->gbit_s);
    candidate.latency_us = std::max(candidate.latency_us, between->latency_us);
  }
}

/// Fabrics on which a host can take part: its own and those linked to them.
std::vector<FabricId> fabrics_of(const Cluster& cluster, const Host& host) {
  std::vector<FabricId> found;
  for (const Nic& nic : host.nics) found.push_back(nic.fabric);
  if (!cluster.links.empty()) {
    for (std::uint32_t i = 0; i < cluster.fabrics.size(); ++i) {
      const auto linked = [&](const Nic& nic) {
        return links_between(cluster, nic.fabric, FabricId(i)).has_value();
      };
      if (std::any_of(host.nics.begin(), host.nics.end(), linked)) found.push_back(FabricId(i));
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

/// The first NIC of each host on `fabric`, which joins them; empty when all only reach it by links.
std::vector<NicId> first_rails(const Cluster& cluster, const std::vector<HostId>& hosts,
                               FabricId fabric) {
  std::vector<NicId> found;
  bool direct = false;
  for (const HostId host : hosts) {
    found.push_back(rails(cluster, host, fabric).front());
    direct = direct || cluster.hosts[host.index()].nics[found.back().index()].fabric == fabric;
  }
  return direct ? found : std::vector<NicId>{};
}

std::vector<Candidate> common_fabrics(const Cluster& cluster, const std::vector<HostId>& hosts) {
  HOLMES_ASSERT(!hosts.empty(), "a group has hosts");
  std::vector<Candidate> candidates;
  std::set<std::vector<NicId>> seen;
  for (const FabricId fabric : fabrics_of(cluster, cluster.hosts[hosts.front().index()])) {
    if (!joins(cluster, fabric, hosts)) continue;
    // Links make several names for the same NICs: one is enough, of a fabric that some host is on.
    const auto first_nics = first_rails(cluster, hosts, fabric);
    if (first_nics.empty() || !seen.insert(first_nics).second) continue;
    Candidate candidate{fabric, std::numeric_limits<double>::infinity(), 0, ~std::size_t{0}};
    for (const HostId host : hosts) {
      const auto mine = rails(cluster, host, fabric);
      double gbit_s = 0;
      for (const NicId id : mine) {
        const Nic& nic = cluster.hosts[host.index()].nics[id.index()];
        gbit_s += nic.gbit_s;
        candidate.latency_us = std::max(candidate.latency_us, nic.latency_us);
      }
      candidate.gbit_s = std::min(candidate.gbit_s, gbit_s);
      candidate.rails = std::min(candidate.rails, mine.size());
    }
    add_crossing(cluster, hosts, candidate);
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
         number(candidate.gbit_s) + " Gbit/s" +
         (candidate.rails > 1 ? " over " + std::to_string(candidate.rails) + " NICs" : "") + ", " +
         number(candidate.latency_us) + " us)";
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

/// The links over which hosts that have no NIC on `fabric` take part in it; or nothing.
std::string linked(const Cluster& cluster, const std::vector<HostId>& hosts, FabricId fabric) {
  std::vector<std::string> others;
  std::set<std::size_t> links;
  for (const HostId host : hosts) {
    const auto mine = rails(cluster, host, fabric);
    const FabricId on = cluster.hosts[host.index()].nics[mine.front().index()].fabric;
    if (on == fabric) continue;
    const std::string& name = cluster.fabrics[on.index()].name;
    if (std::find(others.begin(), others.end(), name) == others.end()) others.push_back(name);
    const auto way = links_between(cluster, on, fabric);
    if (way) links.insert(way->begin(), way->end());
  }
  std::vector<std::string> names;
  for (const std::size_t link : links) {
    const Link& of = cluster.links[link];
    names.push_back(of.from + " - " + of.to);
  }
  if (others.empty()) return "";
  return " and, over [[link]] " + joined(names) + ", " + joined(others);
}

/// Why hosts that all have a NIC on `fabric` cannot use it together.
std::string why_not(const Cluster& cluster, const std::vector<HostId>& hosts, FabricId fabric) {
  const Nic* first = nullptr;
  HostId first_host{};
  for (const HostId id : hosts) {
    const Host& host = cluster.hosts[id.index()];
    const auto mine = rails(cluster, id, fabric);
    if (mine.empty()) {
      const auto nic = std::find_if(host.nics.begin(), host.nics.end(),
                                    [&](const Nic& other) { return other.fabric == fabric; });
      const std::string name = nic->name + " of host " + host.name;
      return nic->use ? "the port of " + name + " is down"
                      : name + " is kept out by " + keeper(*nic);
    }
    const Nic& nic = host.nics[mine.front().index()];
    if (first != nullptr) {
      if (const auto why = contradiction(cluster, *first, nic, false)) {
        return "hosts " + cluster.hosts[first_host.index()].name + " and " + host.name +
               " contradict each other: " + *why;
      }
    }
    if (first == nullptr || first->gid == GidKind::kUnknown) {
      first = &nic;
      first_host = id;
    }
  }
  return "its NICs cannot reach each other";
}

/// Goodput that the NICs of the slowest host would have on `fabric` if all worked; 0 where a host
/// has none there.
double nominal_gbit_s(const Cluster& cluster, const std::vector<HostId>& hosts, FabricId fabric) {
  double least = std::numeric_limits<double>::infinity();
  for (const HostId id : hosts) {
    double sum = 0;
    for (const Nic& nic : cluster.hosts[id.index()].nics) {
      if (nic.fabric == fabric) sum += nic.gbit_s;
    }
    least = std::min(least, sum);
  }
  return least;
}

/// "; not ib (infiniband), which is faster: ...", for each fabric that only faults keep from use.
std::string rejected(const Cluster& cluster, const std::vector<HostId>& hosts,
                     const Candidate& chosen) {
  std::string text;
  for (const FabricId fabric : fabrics_of(cluster, cluster.hosts[hosts.front().index()])) {
    const Fabric& of = cluster.fabrics[fabric.index()];
    if (fabric == chosen.fabric || nominal_gbit_s(cluster, hosts, fabric) <= chosen.gbit_s ||
        joins(cluster, fabric, hosts) || of.kind == NicKind::kLoopback) {
      continue;
    }
    text += "; not the faster " + of.name + " (" + std::string(to_string(of.kind)) +
            "): " + why_not(cluster, hosts, fabric);
  }
  return text;
}

std::string explain(const Cluster& cluster, const std::vector<HostId>& hosts,
                    const std::vector<Candidate>& candidates) {
  const Candidate& chosen = candidates.front();
  const std::string by_link = linked(cluster, hosts, chosen.fabric);
  std::string reason = describe(cluster, chosen) + by_link;
  if (candidates.size() == 1) {
    reason += std::string(": the only ") +
              (by_link.empty() ? "fabric common to its " : "way that joins its ") +
              counted(hosts.size(), "host");
  } else {
    reason += ": the fastest of " + std::to_string(candidates.size()) + " common to its " +
              counted(hosts.size(), "host") + "; next is " + describe(cluster, candidates[1]);
  }
  return reason + rejected(cluster, hosts, chosen) + crossing(cluster, hosts);
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

bool joins(const Cluster& cluster, FabricId fabric, const std::vector<HostId>& hosts) {
  const bool loopback = cluster.fabrics[fabric.index()].kind == NicKind::kLoopback;
  // What is not known contradicts nothing, so that each NIC is held against the first of which
  // each fact is known: that is as good as every pair, and linear.
  std::vector<const Nic*> known(3, nullptr);
  for (const HostId id : hosts) {
    const Host& host = cluster.hosts[id.index()];
    const auto mine = rails(cluster, id, fabric);
    if (mine.empty()) return false;
    // Loopback never leaves a machine.
    if (loopback && host.address != cluster.hosts[hosts.front().index()].address) return false;
    const Nic& nic = host.nics[mine.front().index()];
    for (const Nic* other : known) {
      if (other == nullptr) continue;
      if (contradiction(cluster, *other, nic, other->fabric != nic.fabric)) return false;
    }
    if (known[0] == nullptr) known[0] = &nic;
    if (known[1] == nullptr && nic.gid != GidKind::kUnknown) known[1] = &nic;
    if (known[2] == nullptr && !nic.subnet.empty()) known[2] = &nic;
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
