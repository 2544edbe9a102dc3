#include "holmes/partition/reach.hpp"

#include <algorithm>

#include "network.hpp"
#include "text.hpp"

namespace holmes::partition {

std::vector<HostId> hosts_by_device(const Cluster& cluster) {
  std::vector<HostId> hosts;
  hosts.reserve(cluster.device_count());
  for (std::uint32_t host = 0; host < cluster.hosts.size(); ++host) {
    hosts.insert(hosts.end(), cluster.hosts[host].devices.size(), HostId(host));
  }
  return hosts;
}

std::vector<const Device*> devices_by_rank(const Cluster& cluster) {
  std::vector<const Device*> devices;
  devices.reserve(cluster.device_count());
  for (const Host& host : cluster.hosts) {
    for (const Device& device : host.devices) devices.push_back(&device);
  }
  return devices;
}

std::string cluster_of(const Cluster& cluster, HostId id) {
  const Host& host = cluster.hosts[id.index()];
  if (!host.cluster.empty() || host.nics.empty()) return host.cluster;
  const auto fastest =
      std::max_element(host.nics.begin(), host.nics.end(), [](const Nic& a, const Nic& b) {
        return a.gbit_s != b.gbit_s ? a.gbit_s < b.gbit_s : a.latency_us > b.latency_us;
      });
  return "on " + cluster.fabrics[fastest->fabric.index()].name;
}

std::optional<std::string> why_unreachable(const Cluster& cluster, const Nic& a, const Nic& b) {
  for (const Nic* nic : {&a, &b}) {
    if (!nic->use) return nic->name + " is kept out by " + keeper(*nic);
    if (!nic->port_up) return "the port of " + nic->name + " is down";
  }
  const Fabric& of_a = cluster.fabrics[a.fabric.index()];
  const Fabric& of_b = cluster.fabrics[b.fabric.index()];
  if (!links_between(cluster, a.fabric, b.fabric)) {
    return a.name + " is on " + of_a.name + " (" + std::string(to_string(of_a.kind)) + "), " +
           b.name + " on " + of_b.name + " (" + std::string(to_string(of_b.kind)) +
           "), and no [[link]] joins the two";
  }
  return contradiction(cluster, a, b, a.fabric != b.fabric);
}

std::optional<Route> route(const Cluster& cluster, HostId from, HostId to, FabricId fabric) {
  const Host& a = cluster.hosts[from.index()];
  const Host& b = cluster.hosts[to.index()];
  if (cluster.fabrics[fabric.index()].kind == NicKind::kLoopback && a.address != b.address) {
    return std::nullopt;
  }
  Route result{rails(cluster, from, fabric), rails(cluster, to, fabric)};
  if (result.from_nics.empty() || result.to_nics.empty()) return std::nullopt;
  const Nic& first_a = a.nics[result.from_nics.front().index()];
  const Nic& first_b = b.nics[result.to_nics.front().index()];
  if (why_unreachable(cluster, first_a, first_b)) return std::nullopt;
  const auto sum = [](const Host& host, const std::vector<NicId>& nics) {
    double gbit_s = 0;
    for (const NicId nic : nics) gbit_s += host.nics[nic.index()].gbit_s;
    return gbit_s;
  };
  result.nic_gbit_s = std::min(sum(a, result.from_nics), sum(b, result.to_nics));
  result.latency_us = std::max(first_a.latency_us, first_b.latency_us);
  result.mtu_bytes = first_a.mtu_bytes == 0   ? first_b.mtu_bytes
                     : first_b.mtu_bytes == 0 ? first_a.mtu_bytes
                                              : std::min(first_a.mtu_bytes, first_b.mtu_bytes);
  result.gbit_s = result.nic_gbit_s;
  result.links = *links_between(cluster, first_a.fabric, first_b.fabric);
  const std::string cluster_a = cluster_of(cluster, from);
  const std::string cluster_b = cluster_of(cluster, to);
  if (cluster_a != cluster_b) {
    for (const std::size_t link : cluster_links(cluster, cluster_a, cluster_b)) {
      result.links.push_back(link);
    }
    for (const FabricId id : {first_a.fabric, first_b.fabric}) {
      const double trunk = cluster.fabrics[id.index()].trunk_gbit_s;
      if (trunk <= 0 || (!result.trunks.empty() && result.trunks.back() == id)) continue;
      result.trunks.push_back(id);
      result.gbit_s = std::min(result.gbit_s, trunk);
    }
  }
  for (const std::size_t link : result.links) {
    result.gbit_s = std::min(result.gbit_s, cluster.links[link].gbit_s);
    result.latency_us += cluster.links[link].latency_us;
  }
  return result;
}

}  // namespace holmes::partition
