// Goal: users' NCCL variables keep out exactly the NICs that NCCL would, and each GPU group has its
// own settings. Method: the examples of NCCL's manual; the demo's cluster with GPUs in it.
#include "holmes/partition/nccl.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clusters.hpp"

namespace holmes::partition {
namespace {

using ::testing::HasSubstr;

struct Rule {
  const char* text;
  const char* name;
  bool allowed;
};
class Filter : public ::testing::TestWithParam<Rule> {};

TEST_P(Filter, AllowsAsNcclDoes) {
  EXPECT_EQ(NameFilter(GetParam().text).allows(GetParam().name), GetParam().allowed)
      << GetParam().text << " and " << GetParam().name;
}

INSTANTIATE_TEST_SUITE_P(
    Manual, Filter,
    ::testing::Values(Rule{"eth", "eth0", true}, Rule{"eth", "eth1", true},
                      Rule{"eth", "ib0", false}, Rule{"=eth0", "eth0", true},
                      Rule{"=eth0", "eth01", false}, Rule{"=eth0,eth1", "eth1", true},
                      Rule{"=eth0,eth1", "eth2", false}, Rule{"^docker", "docker0", false},
                      Rule{"^docker", "eth0", true}, Rule{"^=docker0", "docker0", false},
                      Rule{"^=docker0", "docker01", true}, Rule{"mlx5", "mlx5_3", true},
                      Rule{"=mlx5_0:1,mlx5_1:1", "mlx5_1", true},
                      Rule{"=mlx5_0:2", "mlx5_0", false}, Rule{"^=mlx5_3,mlx5_4", "mlx5_4", false},
                      Rule{"^=mlx5_3,mlx5_4", "mlx5_5", true}));
INSTANTIATE_TEST_SUITE_P(Corners, Filter,
                         ::testing::Values(Rule{"", "eth0", true}, Rule{"^", "eth0", false},
                                           Rule{",,eth", "eth0", true}, Rule{",,eth", "ib0", false},
                                           Rule{"=", "eth0", true}, Rule{"eth0,^ib", "ib0", false},
                                           Rule{"=^eth0", "eth0", false},
                                           Rule{"eth0:x", "eth0", false},
                                           Rule{":1", "eth0", true}));

TEST(Filter, PortsAreCompared) {
  EXPECT_TRUE(NameFilter("mlx5_0:2").allows("mlx5_0", 2));
  EXPECT_FALSE(NameFilter("^mlx5_0:2").allows("mlx5_0", 2));
  EXPECT_TRUE(NameFilter("^mlx5_0:2").allows("mlx5_0", 1));
}

std::vector<bool> used(const NcclOverrides& overrides) {
  Cluster cluster = two_clusters();
  EXPECT_TRUE(apply(overrides, cluster));
  std::vector<bool> result;
  for (const std::size_t host : {0, 2}) {
    for (const Nic& nic : cluster.hosts[host].nics) result.push_back(nic.use);
  }
  return result;  // InfiniBand and Ethernet of a0, RoCE and Ethernet of b0
}
using Used = std::vector<bool>;

TEST(Overrides, SocketsAndAdaptersAreSeparate) {
  EXPECT_EQ(used({}), (Used{true, true, true, true}));
  EXPECT_EQ(used({.socket_ifname = "=eth1"}), (Used{true, false, true, false}));
  EXPECT_EQ(used({.socket_ifname = "fast"}), (Used{true, false, true, false}));
  EXPECT_EQ(used({.ib_hca = "^fast"}), (Used{false, true, false, true}));
  EXPECT_EQ(used({.ib_hca = "=fast0:1"}), (Used{true, true, true, true}));
  EXPECT_EQ(used({.ib_disable = "1"}), (Used{false, true, false, true}));
  EXPECT_EQ(used({.ib_disable = "0"}), (Used{true, true, true, true}));
  EXPECT_EQ(used({.socket_ifname = "x"}), (Used{true, true, true, true}));  // too short for NCCL
}

TEST(Overrides, WhatIsNoNumberIsRefused) {
  Cluster cluster = two_clusters();
  const Status status = apply({.ib_disable = "yes"}, cluster);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(status.error().message(), HasSubstr("NCCL_IB_DISABLE=yes is no whole number"));
}

TEST(Overrides, ChangeThePlan) {
  Cluster cluster = two_clusters();
  ASSERT_TRUE(apply({.ib_disable = "1"}, cluster));
  const auto ethernet = plan(cluster, small_model(6), {8, 1, 0}, {});
  ASSERT_TRUE(ethernet);
  EXPECT_EQ(ethernet->groups[0].paths, std::vector<FabricId>{FabricId(2)});
  EXPECT_THAT(ethernet->groups[0].reason,
              HasSubstr("; not the faster ib-a (infiniband): fast0 of host a0 is kept out by "
                        "NCCL_IB_DISABLE=1"));
  ASSERT_TRUE(apply({.socket_ifname = "none"}, cluster));
  const auto nothing = plan(cluster, small_model(6), {8, 1, 0}, {});
  ASSERT_FALSE(nothing);
  EXPECT_THAT(nothing.error().message(), HasSubstr("hosts a0 and a1 share no fabric"));
  EXPECT_THAT(nothing.error().message(),
              HasSubstr("fast0 on ib-a (kept out by NCCL_IB_DISABLE=1)"));
}

Cluster gpu_clusters() {
  Cluster cluster = two_clusters();
  for (Fabric& fabric : cluster.fabrics) fabric.trusted = fabric.kind != NicKind::kEthernet;
  for (Host& host : cluster.hosts) {
    host.devices.assign(2, {"a100", 1, 312, 80});
    host.nics[0].near = {0};
    host.nics.push_back(host.nics[0]);
    host.nics.back().name = "fast1";
    host.nics.back().near = {1};
  }
  return cluster;
}

TEST(NcclSettings, AreOfEachGroupAlone) {
  const Cluster cluster = gpu_clusters();
  const auto made = plan(cluster, small_model(6), {8, 1, 0}, {.tensor = 2});
  ASSERT_TRUE(made) << made.error().message();
  int tensor = 0;
  for (const Group& group : made->groups) {
    const auto settings = nccl_settings(cluster, group);
    if (group.kind == GroupKind::kTensor) {
      ++tensor;
      ASSERT_TRUE(settings);
      EXPECT_EQ(describe(cluster, *settings), "within the host");
    } else if (group.kind != GroupKind::kData) {
      EXPECT_FALSE(settings) << "votes are no GPU's, and Ethernet is not trusted";
    }
  }
  EXPECT_EQ(tensor, 4);
  // Data groups of tensor ranks 0 and 1: each by the adapter near its devices.
  EXPECT_EQ(describe(cluster, *nccl_settings(cluster, made->groups[0])),
            "IB over a0: fast0; a1: fast0");
  EXPECT_EQ(describe(cluster, *nccl_settings(cluster, made->groups[1])),
            "IB over a0: fast1; a1: fast1");
  EXPECT_THAT(explain(*made, cluster), HasSubstr("nccl: its own communicator, IB over a0: fast0"));
}

TEST(NcclSettings, NoneForProcessorsAndFabricsThatAreNotTrusted) {
  Cluster cluster = gpu_clusters();
  const auto made = plan(cluster, small_model(6), {8, 1, 0}, {});
  ASSERT_TRUE(made);
  EXPECT_TRUE(nccl_settings(cluster, made->groups[0]));
  cluster.fabrics[0].trusted = false;
  EXPECT_FALSE(nccl_settings(cluster, made->groups[0]));
  cluster.fabrics[0].trusted = true;
  cluster.hosts[1].devices[1].kind = "cpu";
  EXPECT_FALSE(nccl_settings(cluster, made->groups[0]));
}

}  // namespace
}  // namespace holmes::partition
