// Goal: a cluster file becomes a cluster, and mistakes are told with their line.
// Method: parse small texts; one mistake for each rule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holmes/actors/job_config.hpp"

namespace holmes::actors {
namespace {

using partition::NicKind;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kFabrics = R"([[fabric]]
name = "ib"
kind = "infiniband"
gbit_s = 200
latency_us = 5
[[fabric]]
name = "eth"
kind = "ethernet"
gbit_s = 25
latency_us = 50.5
)";

TEST(ClusterFile, BecomesACluster) {
  const auto cluster = parse_cluster(std::string(kFabrics) + R"(
[[cluster]]
name = "a"
[[host]]
name = "gpu"
count = 2
cluster = "a"
[[host.device]]
kind = "a100"
count = 3
tflops = 197
memory_gib = 80
[[host.nic]]
name = "ib"
fabric = "ib"
count = 4
[[host.nic]]
name = "eth0"
fabric = "eth"
gbit_s = 10
latency_us = 0
[[host]]
name = "head"
address = "10.0.0.1"
[[host.device]]
threads = 2
)",
                                     "c");
  ASSERT_TRUE(cluster) << cluster.error().message();
  EXPECT_EQ(cluster->fabrics[0], (partition::Fabric{"ib", NicKind::kInfiniBand, 200, 5}));
  EXPECT_EQ(cluster->fabrics[1], (partition::Fabric{"eth", NicKind::kEthernet, 25, 50.5}));
  ASSERT_EQ(cluster->hosts.size(), 3U);
  const partition::Host& host = cluster->hosts[1];
  EXPECT_EQ(host.name, "gpu1");
  EXPECT_EQ(host.cluster, "a");
  ASSERT_EQ(host.devices.size(), 3U);
  EXPECT_EQ(host.devices[2], (partition::Device{"a100", 1, 197, 80}));
  ASSERT_EQ(host.nics.size(), 5U);
  EXPECT_EQ(host.nics[3], (partition::Nic{"ib3", FabricId(0), 200, 5}));
  EXPECT_EQ(host.nics[4], (partition::Nic{"eth0", FabricId(1), 10, 0}));
  EXPECT_EQ(cluster->hosts[2].address, "10.0.0.1");
  EXPECT_TRUE(cluster->hosts[2].nics.empty());
  EXPECT_EQ(cluster->hosts[2].devices[0].threads, 2U);
}

struct Mistake {
  std::string text;  ///< Behind kFabrics, which has 10 lines.
  const char* begins;
  const char* says;
};
class Mistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreToldWithTheirLine) {
  const auto cluster = parse_cluster(std::string(kFabrics) + GetParam().text, "c");
  ASSERT_FALSE(cluster);
  EXPECT_EQ(cluster.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(cluster.error().message(),
              AllOf(StartsWith(GetParam().begins), HasSubstr(GetParam().says)));
}

const std::string kHost = "[[host]]\nname = \"h\"\n[[host.device]]\n";

INSTANTIATE_TEST_SUITE_P(
    Rules, Mistakes,
    ::testing::Values(
        Mistake{"", "c: ", "has no hosts"},
        Mistake{"[[hosts]]\nname = \"h\"",
                "c:11: ", "unknown entry [[hosts]]; did you mean 'host'?"},
        Mistake{"[host]\nname = \"h\"", "c:11: ", "write [[host]] before each entry"},
        Mistake{"[[host]]\ncluster = \"h\"", "c:11: ", "[[host]] needs the key 'name'"},
        Mistake{"[[host]]\nname = \"h\"", "c:11: ", "'h' has no device"},
        Mistake{"[[host]]\nname = 3", "c:12: ", "[[host]] name: wants a string, not an integer"},
        Mistake{"[[host]]\nname = \"h\"\nadress = \"x\"", "c:13: ", "did you mean 'address'?"},
        Mistake{kHost + "thread = 2", "c:14: ", "did you mean 'threads'?"},
        Mistake{kHost + "tflops = -1", "c:14: ", "[[host.device]] tflops: -1 is out of range"},
        Mistake{kHost + "tflops = nan", "c:14: ", "nan is out of range"},
        Mistake{kHost + "memory_gib = inf", "c:14: ", "inf is out of range"},
        Mistake{kHost + "count = 0", "c:14: ", "0 is out of range"},
        Mistake{kHost + "count = 65536\n[[host.device]]", "c:15: ", "over 65536 devices"},
        Mistake{kHost + "[[host.nic]]\nname = \"n\"\nfabric = \"ibb\"",
                "c:16: ", "'ibb' is not declared; did you mean 'ib'?"},
        Mistake{kHost + "[[host.nic]]\nname = \"n\"", "c:14: ", "needs the key 'fabric'"},
        Mistake{kHost + "[[host.nic]]\nname = \"n\"\nfabric = \"ib\"\ngbit_s = 0",
                "c:17: ", "out of range"},
        Mistake{kHost + "[[host.nic]]\nname = \"n\"\nfabric = \"ib\"\ncount = 65",
                "c:17: ", "between 1 and 64"},
        Mistake{kHost + "[[host.nic]]\nname = \"n\"\nfabric = \"ib\"\n[[host.nic]]\nname = \"n\"\n"
                        "fabric = \"eth\"",
                "c:18: ", "two NICs of the host are named 'n'; the first is at line 15"},
        Mistake{kHost + kHost, "c:15: ", "two hosts are named 'h'; the first is at line 12"},
        Mistake{"[[host]]\nname = \"h\"\ncount = 4096\n[[host.device]]\n[[host]]\nname = \"i\"\n"
                "[[host.device]]",
                "c:15: ", "over 4096 hosts"},
        Mistake{"[[host]]\nname = \"../h\"\n[[host.device]]", "c:12: ", "'../h'"},
        Mistake{"[[cluster]]\nname = \"a\"\n[[cluster]]\nname = \"a\"",
                "c:14: ", "two clusters are named 'a'"},
        Mistake{"[[cluster]]\nname = \"alpha\"\n[[host]]\nname = \"h\"\ncluster = \"alhpa\"",
                "c:15: ", "'alhpa' is not declared; did you mean 'alpha'?"},
        Mistake{"[[fabric]]\nname = \"eth\"\nkind = \"roce\"\ngbit_s = 1\nlatency_us = 1",
                "c:12: ", "two fabrics are named 'eth'; the first is at line 7"},
        Mistake{"[[fabric]]\nname = \"x\"\nkind = \"infinyband\"",
                "c:13: ", "did you mean 'infiniband'?"},
        Mistake{"[[fabric]]\nname = \"x\"\nkind = \"roce\"\ngbit_s = 1\nlatency_us = -1",
                "c:15: ", "[[fabric]] latency_us: -1 is out of range"},
        Mistake{"[[fabric]]\nname = \"x\"", "c:11: ", "needs the key 'kind'"}));

/// Two hosts in clusters a and b, on lines 11 to 18, and a link with these ends.
std::string link_between(const std::string& from, const std::string& to) {
  return "[[host]]\nname = \"h\"\ncluster = \"a\"\n[[host.device]]\n[[host]]\nname = \"i\"\n"
         "cluster = \"b\"\n[[host.device]]\n[[link]]\nfrom = \"" +
         from + "\"\nto = \"" + to + "\"\ngbit_s = 1\nlatency_us = 5\n";
}

INSTANTIATE_TEST_SUITE_P(
    Links, Mistakes,
    ::testing::Values(
        Mistake{link_between("aa", "b"), "c:20: ", "[[link]] from: 'aa' is neither a fabric nor"},
        Mistake{link_between("a", "ibb"), "c:21: ", "did you mean 'ib'?"},
        Mistake{link_between("a", "ib"), "c:21: ", "'ib' is a fabric, the other end is not"},
        Mistake{link_between("ib", "ib"), "c:21: ", "two different ends"},
        Mistake{link_between("ib", "eth"), "c:21: ", "infiniband and ethernet cannot be joined"},
        Mistake{link_between("a", "b") + "[[link]]\nfrom = \"b\"\nto = \"a\"\ngbit_s = 1\n"
                                         "latency_us = 1",
                "c:24: ", "two links join 'b' and 'a'; the first is at line 19"},
        Mistake{link_between("a", "b") + "[[link]]\nfrom = \"b\"\nto = \"a\"\ngbit_s = -1",
                "c:27: ", "[[link]] gbit_s: -1 is out of range"},
        Mistake{link_between("a", "b") + "[[link]]\nfrom = \"b\"",
                "c:24: ", "needs the key 'to'"}));

INSTANTIATE_TEST_SUITE_P(
    Facts, Mistakes,
    ::testing::Values(
        Mistake{kHost + "[[host.nic]]\nname = \"n\"\nfabric = \"ib\"\nnear = [1]",
                "c:17: ", "[[host.nic]] near: 1 is no device of the host, which has 1"},
        Mistake{kHost + "[[host.nic]]\nname = \"n\"\nfabric = \"ib\"\nnear = [0, 0]",
                "c:17: ", "names device 0 twice"},
        Mistake{kHost + "[[host.nic]]\nname = \"n\"\nfabric = \"ib\"\nnear = 0",
                "c:17: ", "wants a list of device numbers, not an integer"},
        Mistake{kHost + "[[host.nic]]\nname = \"n\"\nfabric = \"ib\"\nnear = [\"0\"]",
                "c:17: ", "wants device numbers, not a string"},
        Mistake{kHost + "[[host.nic]]\nname = \"n\"\nfabric = \"ib\"\ngid = \"roce-v2\"",
                "c:17: ", "'roce-v2' is not possible on fabric 'ib', which is of kind infiniband"},
        Mistake{kHost + "[[host.nic]]\nname = \"n\"\nfabric = \"ib\"\ngid = \"roce\"",
                "c:17: ", "[[host.nic]] gid: 'roce' is none of"},
        Mistake{kHost + "[[host.nic]]\nname = \"n\"\nfabric = \"ib\"\nport = \"dwon\"",
                "c:17: ", "did you mean 'down'?"},
        Mistake{kHost + "[[host.nic]]\nname = \"n\"\nfabric = \"ib\"\nmtu_bytes = 9",
                "c:17: ", "[[host.nic]] mtu_bytes: 9 is out of range"},
        Mistake{kHost + "kind = \"a 100\"", "c:14: ", "[[host.device]] kind: 'a 100': use letters"},
        Mistake{kHost + "training_tflops = -1", "c:14: ", "training_tflops: -1 is out of range"},
        Mistake{"[[host]]\nname = \"h\"\ncluster = \"..\"", "c:13: ", "[[host]] cluster: '..'"},
        Mistake{"[[fabric]]\nname = \"x\"\nkind = \"roce\"\ngbit_s = 1\nlatency_us = 1\n"
                "trunk_gbit_s = 1e9",
                "c:16: ", "[[fabric]] trunk_gbit_s: 1e+09 is out of range"}));

TEST(ClusterFile, KeepsLinksTrunksAndFactsOfNics) {
  const auto cluster = parse_cluster(std::string(kFabrics) + R"(
trunk_gbit_s = 40
trusted = true
[[host]]
name = "h"
cluster = "a"
[[host.device]]
count = 2
training_tflops = 1.5
[[host.nic]]
name = "ib"
fabric = "ib"
count = 2
near = [1]
subnet = "fe80::1"
gid = "infiniband"
mtu_bytes = 4096
port = "down"
address = "10.0.0.7"
use = false
[[host]]
name = "i"
cluster = "b"
[[host.device]]
[[link]]
from = "a"
to = "b"
gbit_s = 10
latency_us = 5000
)",
                                     "c");
  ASSERT_TRUE(cluster) << cluster.error().message();
  EXPECT_EQ(cluster->fabrics[1],
            (partition::Fabric{"eth", NicKind::kEthernet, 25, 50.5, 40, true}));
  EXPECT_EQ(cluster->hosts[0].devices[1].split_speed(), 1.5);
  EXPECT_EQ(cluster->hosts[0].nics[1], (partition::Nic{"ib1",
                                                       FabricId(0),
                                                       200,
                                                       5,
                                                       "10.0.0.7",
                                                       {1},
                                                       false,
                                                       false,
                                                       "fe80::1",
                                                       partition::GidKind::kInfiniBand,
                                                       4096}));
  EXPECT_EQ(cluster->links, (std::vector<partition::Link>{{"a", "b", 10, 5000}}));
  const auto again = parse_cluster(to_toml(*cluster), "again");
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(*again, *cluster);
}

TEST(ClusterFile, ListsNeedTheirBrackets) {
  const auto cluster = parse_cluster("host = [1]\n", "c");
  ASSERT_FALSE(cluster);
  EXPECT_THAT(cluster.error().message(), AllOf(StartsWith("c:1: "), HasSubstr("write [[host]]")));
}

TEST(ClusterFile, WithoutFabricsSaysWhatToAdd) {
  const auto cluster = parse_cluster(kHost + "[[host.nic]]\nname = \"n\"\nfabric = \"ib\"\n", "c");
  ASSERT_FALSE(cluster);
  EXPECT_EQ(cluster.error().message(),
            "c:6: [[host.nic]] fabric: 'ib' is not declared; add a [[fabric]]");
}

}  // namespace
}  // namespace holmes::actors
