// Goal: whether and how two NICs reach each other is decided from the facts of both ends.
// Method: the demo's cluster with one fact changed, in both directions.
#include "holmes/partition/reach.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clusters.hpp"

namespace holmes::partition {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr FabricId kIb(0);
constexpr FabricId kRoce(1);
constexpr FabricId kEthernet(2);

/// The same answer from both ends.
std::optional<std::string> why(const Cluster& cluster, const Nic& a, const Nic& b) {
  const auto there = why_unreachable(cluster, a, b);
  EXPECT_EQ(there.has_value(), why_unreachable(cluster, b, a).has_value());
  return there;
}

TEST(Reach, NeedsOneFabric) {
  const Cluster cluster = two_clusters();
  const auto& nics_a = cluster.hosts[0].nics;
  const auto& nics_b = cluster.hosts[2].nics;
  EXPECT_EQ(why(cluster, nics_a[1], nics_b[1]), std::nullopt);
  EXPECT_THAT(*why(cluster, nics_a[0], nics_b[0]),
              HasSubstr("fast0 is on ib-a (infiniband), fast0 on roce-b (roce)"));
}

TEST(Reach, NeedsBothPortsUpAndBothInUse) {
  Cluster cluster = two_clusters();
  cluster.hosts[1].nics[0].port_up = false;
  EXPECT_THAT(*why(cluster, cluster.hosts[0].nics[0], cluster.hosts[1].nics[0]),
              HasSubstr("the port of fast0 is down"));
  EXPECT_EQ(route(cluster, HostId(0), HostId(1), kIb), std::nullopt);
  cluster.hosts[1].nics[0].port_up = true;
  cluster.hosts[0].nics[0].use = false;
  EXPECT_THAT(*why(cluster, cluster.hosts[0].nics[0], cluster.hosts[1].nics[0]),
              HasSubstr("kept out"));
  EXPECT_EQ(cluster.nic_on(HostId(0), kIb), std::nullopt);
}

TEST(Reach, InfiniBandNeedsOneSubnetWhereBothAreKnown) {
  Cluster cluster = two_clusters();
  Nic& a = cluster.hosts[0].nics[0];
  Nic& b = cluster.hosts[1].nics[0];
  a.subnet = "fe80:1";
  EXPECT_EQ(why(cluster, a, b), std::nullopt);
  b.subnet = "fe80:2";
  EXPECT_THAT(*why(cluster, a, b), HasSubstr("subnet fe80:1"));
  b.subnet = "fe80:1";
  EXPECT_EQ(why(cluster, a, b), std::nullopt);
}

TEST(Reach, EthernetRoutesBetweenSubnets) {
  Cluster cluster = two_clusters();
  cluster.hosts[0].nics[1].subnet = "10.0.0.0/24";
  cluster.hosts[1].nics[1].subnet = "10.0.1.0/24";
  EXPECT_EQ(why(cluster, cluster.hosts[0].nics[1], cluster.hosts[1].nics[1]), std::nullopt);
}

TEST(Reach, RoceVersionsDoNotMixAndOnlyVersion2IsRouted) {
  Cluster cluster = two_clusters();
  Nic& a = cluster.hosts[2].nics[0];
  Nic& b = cluster.hosts[3].nics[0];
  a.gid = GidKind::kRoceV1;
  b.gid = GidKind::kRoceV2;
  EXPECT_THAT(*why(cluster, a, b), HasSubstr("GID kind roce-v1"));
  a.gid = GidKind::kRoceV2;
  a.subnet = "10.0.0.0/24";
  b.subnet = "10.0.1.0/24";
  EXPECT_EQ(why(cluster, a, b), std::nullopt);
  a.gid = b.gid = GidKind::kRoceV1;
  EXPECT_THAT(*why(cluster, a, b), HasSubstr("subnet"));
}

TEST(Route, AddsRailsAndTakesTheSlowerEnd) {
  Cluster cluster = two_clusters();
  cluster.hosts[0].nics.push_back({"fast1", kIb, 2, 20});
  cluster.hosts[1].nics.push_back({"fast1", kIb, 1, 30});
  cluster.hosts[0].nics[0].mtu_bytes = 4096;
  cluster.hosts[1].nics[0].mtu_bytes = 2048;
  const auto found = route(cluster, HostId(0), HostId(1), kIb);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->from_nics, ElementsAre(NicId(0), NicId(2)));
  EXPECT_EQ(found->gbit_s, 3);
  EXPECT_EQ(found->latency_us, 20);
  EXPECT_EQ(found->mtu_bytes, 2048U);
  EXPECT_THAT(found->trunks, IsEmpty());
}

TEST(Route, MeetsTheTrunkBetweenClustersOnly) {
  Cluster cluster = two_clusters();
  cluster.fabrics[kEthernet.index()].trunk_gbit_s = 0.25;
  const auto across = route(cluster, HostId(0), HostId(2), kEthernet);
  ASSERT_TRUE(across);
  EXPECT_THAT(across->trunks, ElementsAre(kEthernet));
  EXPECT_EQ(across->gbit_s, 0.25);
  EXPECT_EQ(across->nic_gbit_s, 0.5);
  const auto within = route(cluster, HostId(0), HostId(1), kEthernet);
  EXPECT_THAT(within->trunks, IsEmpty());
  EXPECT_EQ(within->gbit_s, 0.5);
}

TEST(Route, CrossesLinksBetweenClusters) {
  Cluster cluster = two_clusters();
  cluster.links = {{"b", "a", 0.1, 5000}};
  ASSERT_TRUE(validate(cluster));
  const auto across = route(cluster, HostId(1), HostId(3), kEthernet);
  ASSERT_TRUE(across);
  EXPECT_THAT(across->links, ElementsAre(0U));
  EXPECT_EQ(across->gbit_s, 0.1);
  EXPECT_EQ(across->latency_us, 5200);
  EXPECT_THAT(route(cluster, HostId(2), HostId(3), kEthernet)->links, IsEmpty());
}

TEST(Route, CrossesLinksBetweenFabricsOneAfterAnother) {
  Cluster cluster;
  cluster.fabrics = {{"x", NicKind::kEthernet, 10, 10},
                     {"y", NicKind::kEthernet, 10, 10},
                     {"z", NicKind::kEthernet, 10, 10}};
  for (std::uint32_t i = 0; i < 3; ++i) {
    cluster.hosts.push_back({"h" + std::to_string(i), "c", "", {Device{}}, {}});
    cluster.hosts.back().nics = {{"eth0", FabricId(i), 10, 10}};
  }
  EXPECT_EQ(route(cluster, HostId(0), HostId(2), FabricId(0)), std::nullopt);
  cluster.links = {{"x", "y", 5, 100}, {"z", "y", 2, 1000}};
  ASSERT_TRUE(validate(cluster));
  const auto found = route(cluster, HostId(0), HostId(2), FabricId(0));
  ASSERT_TRUE(found);
  EXPECT_THAT(found->links, ElementsAre(0U, 1U));
  EXPECT_EQ(found->gbit_s, 2);
  EXPECT_EQ(found->latency_us, 1110);
  EXPECT_EQ(cluster.nic_on(HostId(2), FabricId(0)), NicId(0));
}

TEST(Route, NothingBetweenDifferentRdmaFabrics) {
  const Cluster cluster = two_clusters();
  EXPECT_EQ(route(cluster, HostId(0), HostId(2), kIb), std::nullopt);
  EXPECT_EQ(route(cluster, HostId(0), HostId(2), kRoce), std::nullopt);
}

TEST(Tables, FollowTheHosts) {
  Cluster cluster = two_clusters();
  cluster.hosts[1].devices.push_back({"gpu", 1, 9, 8});
  EXPECT_THAT(hosts_by_device(cluster),
              ElementsAre(HostId(0), HostId(1), HostId(1), HostId(2), HostId(3)));
  EXPECT_EQ(devices_by_rank(cluster)[2]->tflops, 9);
  cluster.hosts[0].cluster.clear();
  EXPECT_EQ(cluster_of(cluster, HostId(0)), "on ib-a");
  EXPECT_EQ(cluster_of(cluster, HostId(1)), "a");
}

}  // namespace
}  // namespace holmes::partition
