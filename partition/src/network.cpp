#include "network.hpp"

#include <algorithm>

namespace holmes::partition {
namespace {

std::string nic_text(const Cluster& cluster, const Nic& nic) {
  return nic.name + " on " + cluster.fabrics[nic.fabric.index()].name;
}

/// Breadth first from `from`: for each fabric the link by which it was reached.
struct Search {
  static constexpr std::size_t kNone = ~std::size_t{0};
  std::vector<std::size_t> link;
  std::vector<std::size_t> before;
  std::vector<FabricId> order;
};

std::optional<FabricId> fabric_named(const Cluster& cluster, const std::string& name) {
  for (std::uint32_t i = 0; i < cluster.fabrics.size(); ++i) {
    if (cluster.fabrics[i].name == name) return FabricId(i);
  }
  return std::nullopt;
}

Search search(const Cluster& cluster, FabricId from) {
  Search found{std::vector<std::size_t>(cluster.fabrics.size(), Search::kNone),
               std::vector<std::size_t>(cluster.fabrics.size(), Search::kNone),
               {from}};
  for (std::size_t next = 0; next < found.order.size(); ++next) {
    const FabricId here = found.order[next];
    const std::string& name = cluster.fabrics[here.index()].name;
    for (std::size_t i = 0; i < cluster.links.size(); ++i) {
      const Link& link = cluster.links[i];
      if (link.from != name && link.to != name) continue;
      const auto there = fabric_named(cluster, link.from == name ? link.to : link.from);
      if (!there || *there == from || found.link[there->index()] != Search::kNone) continue;
      found.link[there->index()] = i;
      found.before[there->index()] = here.index();
      found.order.push_back(*there);
    }
  }
  return found;
}

void add_up(const Cluster& cluster, const Host& host, FabricId fabric, std::vector<NicId>& found) {
  for (std::uint32_t i = 0; i < host.nics.size(); ++i) {
    const Nic& nic = host.nics[i];
    if (nic.fabric != fabric || !nic.port_up || !nic.use) continue;
    if (!found.empty() &&
        contradiction(cluster, host.nics[found.front().index()], nic, false).has_value()) {
      continue;
    }
    found.push_back(NicId(i));
  }
}

}  // namespace

std::optional<std::vector<std::size_t>> links_between(const Cluster& cluster, FabricId from,
                                                      FabricId to) {
  std::vector<std::size_t> way;
  if (from == to) return way;
  if (cluster.links.empty()) return std::nullopt;
  const Search found = search(cluster, from);
  if (found.link[to.index()] == Search::kNone) return std::nullopt;
  for (std::size_t at = to.index(); at != from.index(); at = found.before[at]) {
    way.push_back(found.link[at]);
  }
  std::reverse(way.begin(), way.end());
  return way;
}

std::vector<NicId> rails(const Cluster& cluster, HostId id, FabricId fabric) {
  const Host& host = cluster.hosts[id.index()];
  std::vector<NicId> found;
  add_up(cluster, host, fabric, found);
  if (!found.empty() || cluster.links.empty()) return found;
  for (const FabricId other : search(cluster, fabric).order) {
    add_up(cluster, host, other, found);
    if (!found.empty()) return found;
  }
  return found;
}

std::optional<std::string> contradiction(const Cluster& cluster, const Nic& a, const Nic& b,
                                         bool routed) {
  const auto differ = [&](const std::string& what, std::string_view of_a, std::string_view of_b) {
    return nic_text(cluster, a) + " has " + what + " " + std::string(of_a) + ", " +
           nic_text(cluster, b) + " has " + std::string(of_b);
  };
  if (a.gid != GidKind::kUnknown && b.gid != GidKind::kUnknown && a.gid != b.gid) {
    return differ("GID kind", to_string(a.gid), to_string(b.gid));
  }
  // IP routes between subnets; InfiniBand and RoCE v1 do not.
  const NicKind kind = cluster.fabrics[a.fabric.index()].kind;
  const bool one_subnet = kind == NicKind::kInfiniBand || a.gid == GidKind::kRoceV1;
  if (one_subnet && !routed && !a.subnet.empty() && !b.subnet.empty() && a.subnet != b.subnet) {
    return differ("subnet", a.subnet, b.subnet);
  }
  return std::nullopt;
}

std::vector<std::size_t> cluster_links(const Cluster& cluster, const std::string& a,
                                       const std::string& b) {
  std::vector<std::size_t> found;
  if (a == b) return found;
  for (std::size_t i = 0; i < cluster.links.size(); ++i) {
    const Link& link = cluster.links[i];
    if ((link.from == a && link.to == b) || (link.from == b && link.to == a)) found.push_back(i);
  }
  return found;
}

}  // namespace holmes::partition
