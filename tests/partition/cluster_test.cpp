// Goal: a cluster finds its parts, and refuses what cannot be trained on, naming the entry.
// Method: the demo's cluster, damaged in one place for each rule.
#include "holmes/partition/cluster.hpp"

#include <cmath>
#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clusters.hpp"

namespace holmes::partition {
namespace {

using ::testing::HasSubstr;

TEST(Cluster, NumbersDevicesThroughAllHosts) {
  Cluster cluster = two_clusters();
  cluster.hosts[1].devices.push_back({"cpu", 2, 0.7, 8});
  EXPECT_EQ(cluster.device_count(), 5U);
  EXPECT_EQ(cluster.host_of(DeviceId(0)), HostId(0));
  EXPECT_EQ(cluster.host_of(DeviceId(2)), HostId(1));
  EXPECT_EQ(cluster.host_of(DeviceId(4)), HostId(3));
  EXPECT_EQ(cluster.device(DeviceId(2)).threads, 2U);
  EXPECT_TRUE(validate(cluster));
}

TEST(Cluster, FindsTheNicOnAFabric) {
  const Cluster cluster = two_clusters();
  EXPECT_EQ(cluster.nic_on(HostId(0), FabricId(0)), NicId(0));
  EXPECT_EQ(cluster.nic_on(HostId(0), FabricId(2)), NicId(1));
  EXPECT_EQ(cluster.nic_on(HostId(0), FabricId(1)), std::nullopt);
}

TEST(ClusterDeathTest, UnknownDevicesAreBugs) {
  EXPECT_DEATH(std::ignore = two_clusters().host_of(DeviceId(4)), "out of range");
  EXPECT_DEATH(std::ignore = two_clusters().device(DeviceId(9)), "out of range");
}

struct Damage {
  const char* what;
  std::function<void(Cluster&)> apply;
  const char* message;
};

class DamagedCluster : public ::testing::TestWithParam<Damage> {};

TEST_P(DamagedCluster, IsRefusedByName) {
  Cluster cluster = two_clusters();
  GetParam().apply(cluster);
  const Status status = validate(cluster);
  ASSERT_FALSE(status) << GetParam().what;
  EXPECT_EQ(status.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(status.error().message(), HasSubstr(GetParam().message));
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

INSTANTIATE_TEST_SUITE_P(
    Rules, DamagedCluster,
    ::testing::Values(
        Damage{"no hosts", [](Cluster& c) { c.hosts.clear(); }, "no hosts"},
        Damage{"no device", [](Cluster& c) { c.hosts[1].devices.clear(); },
               "host a1 has no device"},
        Damage{"same host", [](Cluster& c) { c.hosts[3].name = "a0"; }, "two hosts are named 'a0'"},
        Damage{"same fabric", [](Cluster& c) { c.fabrics[1].name = "ib-a"; },
               "two fabrics are named 'ib-a'"},
        Damage{"same NIC", [](Cluster& c) { c.hosts[2].nics[1].name = "fast0"; },
               "host b0: two NICs are named 'fast0'"},
        Damage{"path in name", [](Cluster& c) { c.hosts[0].name = "../etc"; }, "'../etc'"},
        Damage{"dot in front", [](Cluster& c) { c.hosts[0].name = ".."; }, "no '.' in front"},
        Damage{"empty name", [](Cluster& c) { c.fabrics[0].name = ""; }, "fabric has no name"},
        Damage{"long name", [](Cluster& c) { c.hosts[0].name = std::string(65, 'x'); },
               "over 64 characters"},
        Damage{"unknown fabric", [](Cluster& c) { c.hosts[0].nics[0].fabric = FabricId(3); },
               "host a0, NIC fast0: fabric 3 does not exist"},
        Damage{"negative speed", [](Cluster& c) { c.hosts[0].nics[0].gbit_s = -1; },
               "host a0, NIC fast0: gbit_s = -1"},
        Damage{"NaN speed", [](Cluster& c) { c.fabrics[2].gbit_s = kNan; },
               "fabric ethernet: gbit_s = "},
        Damage{"endless speed", [](Cluster& c) { c.hosts[0].devices[0].tflops = kInfinity; },
               "host a0, device cpu: tflops = inf"},
        Damage{"no memory", [](Cluster& c) { c.hosts[0].devices[0].memory_gib = 0; },
               "memory_gib = 0"},
        Damage{"negative latency", [](Cluster& c) { c.fabrics[0].latency_us = -5; },
               "fabric ib-a: latency_us = -5"},
        Damage{"no threads", [](Cluster& c) { c.hosts[0].devices[0].threads = 0; }, "threads = 0"},
        Damage{"many hosts", [](Cluster& c) { c.hosts.resize(5000); }, "5000 hosts; at most 4096"},
        Damage{"many NICs", [](Cluster& c) { c.hosts[0].nics.resize(65); }, "65 NICs"},
        Damage{"many devices", [](Cluster& c) { c.hosts[0].devices.resize(65536, Device{}); },
               "65539 devices; at most 65536"}));

}  // namespace
}  // namespace holmes::partition
