#pragma once

// Clusters for tests: the demo's, and random ones.

#include <string>

#include "holmes/base/random.hpp"
#include "holmes/partition/cluster.hpp"
#include "holmes/partition/plan.hpp"

namespace holmes::partition {

/// Hosts a0 a1 on ib-a, b0 b1 on roce-b, all on ethernet; one device each.
inline Cluster two_clusters() {
  Cluster cluster;
  cluster.fabrics = {{"ib-a", NicKind::kInfiniBand, 2, 20},
                     {"roce-b", NicKind::kRoce, 2, 30},
                     {"ethernet", NicKind::kEthernet, 0.5, 200}};
  for (const std::string name : {"a0", "a1", "b0", "b1"}) {
    const std::uint32_t fast = name[0] == 'a' ? 0 : 1;
    Host host{name, name.substr(0, 1), "", {Device{}}, {}};
    host.nics = {{"fast0", FabricId(fast), 2, fast == 0 ? 20.0 : 30.0},
                 {"eth0", FabricId(2), 0.5, 200}};
    cluster.hosts.push_back(host);
  }
  return cluster;
}

inline ModelCost small_model(std::uint32_t blocks) {
  return {blocks, 100, 1, 10, 1000, 300, 300, 4096};
}

/// Up to 12 hosts in up to 4 clusters, each with a fabric of its own kind and Ethernet for all;
/// 1-3 devices a host, unequal speeds, hosts of clusters interleaved now and then.
inline Cluster random_cluster(Random& random) {
  Cluster cluster;
  const auto clusters = static_cast<std::uint32_t>(1 + random.below(4));
  for (std::uint32_t c = 0; c < clusters; ++c) {
    const auto kind = static_cast<NicKind>(random.below(3));
    cluster.fabrics.push_back(
        {"fast-" + std::to_string(c), kind, 1 + 100 * random.uniform(), 1 + 20 * random.uniform()});
  }
  cluster.fabrics.push_back({"ethernet", NicKind::kEthernet, 0.9, 100});
  const auto hosts = static_cast<std::uint32_t>(clusters + random.below(13 - clusters));
  for (std::uint32_t h = 0; h < hosts; ++h) {
    const auto c = h < clusters ? h : static_cast<std::uint32_t>(random.below(clusters));
    Host host{"h" + std::to_string(h), "c" + std::to_string(c), "", {}, {}};
    for (std::uint64_t d = 0; d <= random.below(3); ++d) {
      host.devices.push_back({"cpu", 1, 0.1 + random.uniform(), 4});
    }
    const Fabric& fast = cluster.fabrics[c];
    if (random.chance(0.9)) host.nics.push_back({"f0", FabricId(c), fast.gbit_s, fast.latency_us});
    host.nics.push_back({"eth0", FabricId(clusters), 0.9, 100});
    cluster.hosts.push_back(host);
  }
  return cluster;
}

}  // namespace holmes::partition
