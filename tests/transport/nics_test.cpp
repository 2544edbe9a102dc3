// Goal: machines that differ are seen as what they are: which ports are one NIC, which are left out
// and why, which address RDMA uses, how near the GPUs are. Method: recorded trees of machines, and
// small changes to them.
#include "holmes/transport/nics.hpp"

#include <gmock/gmock.h>

#include "recorded_machine.hpp"

namespace holmes::transport {
namespace {

using holmes::testing::RecordedMachine;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

FoundNics found(const RecordedMachine& machine, const NicOptions& options = {}) {
  const auto facts = recorded_facts(machine.path());
  EXPECT_TRUE(facts) << facts.error().message();
  auto nics = find_nics(*facts, options);
  EXPECT_TRUE(nics) << nics.error().message();
  return std::move(nics).value();
}
FoundNics found(const std::string& name) {
  return found(RecordedMachine(name));
}

std::vector<std::string> used(const FoundNics& nics) {
  std::vector<std::string> names;
  for (const auto& nic : nics.nics)
    if (nic.left_out.empty()) names.push_back(nic.name + " " + std::string(to_string(nic.layer)));
  return names;
}

const FoundNic& named(const FoundNics& nics, const std::string& name) {
  for (const auto& nic : nics.nics)
    if (nic.name == name) return nic;
  ADD_FAILURE() << "no NIC " << name;
  return nics.nics.front();
}

TEST(Nics, FourInfiniBandPorts) {
  const auto nics = found("four-infiniband");
  EXPECT_EQ(nics.host, "gpu-1");
  EXPECT_THAT(used(nics), ElementsAre("mlx5_0 infiniband", "mlx5_1 infiniband", "mlx5_2 infiniband",
                                      "mlx5_3 infiniband", "eno1 ethernet"));
  const auto& first = named(nics, "mlx5_0");
  EXPECT_EQ(first.gbit_s, 200);
  EXPECT_EQ(first.lid, 17u);
  EXPECT_EQ(first.mtu_bytes, 4096u);
  EXPECT_EQ(first.interface, "ib0");
  EXPECT_EQ(first.subnet, "fe80:0000:0000:0000");
  EXPECT_THAT(first.addresses, ElementsAre(InterfaceAddress{"ib0", "10.10.0.1", 16}));
  EXPECT_EQ(named(nics, "eno1").subnet, "192.168.7.0/24");
  EXPECT_EQ(named(nics, "eno1").gbit_s, 25);
  EXPECT_THAT(named(nics, "docker0").left_out, HasSubstr("bridge without a physical port"));
  EXPECT_EQ(named(nics, "veth1a2b").left_out, "port of bridge docker0");
  EXPECT_EQ(named(nics, "lo").left_out, "loopback");
}

TEST(Nics, SayHowNearEachGpuIs) {
  const auto nics = found("four-infiniband");
  using enum GpuDistance;
  const auto distances = [&](const std::string& name) {
    std::vector<GpuDistance> all;
    for (const auto& gpu : named(nics, name).gpus) all.push_back(gpu.distance);
    return all;
  };
  EXPECT_THAT(distances("mlx5_0"), ElementsAre(kSwitch, kNumaNode, kSystem, kSystem));
  EXPECT_THAT(distances("mlx5_3"), ElementsAre(kSystem, kSystem, kNumaNode, kSwitch));
  EXPECT_THAT(distances("eno1"), ElementsAre(kHostBridge, kNumaNode, kSystem, kSystem));
  EXPECT_EQ(named(nics, "mlx5_2").numa_node, 1);
}

TEST(Nics, RocePortsInABondAreOneNic) {
  const auto nics = found("roce-bond");
  EXPECT_THAT(used(nics), ElementsAre("mlx5_bond_0 roce"));
  const auto& nic = nics.nics.front();
  EXPECT_EQ(nic.interface, "bond0");
  EXPECT_THAT(nic.members, ElementsAre("ens1f0np0", "ens1f1np1"));
  EXPECT_EQ(nic.subnet, "10.20.0.0/24");
  EXPECT_EQ(named(nics, "ens1f1np1").left_out, "member of bond bond0");
}

TEST(Nics, LinkLocalAddressesAndVersion1AreSkipped) {
  const auto nic = found("roce-bond").nics.front();
  EXPECT_EQ(nic.gid, (Gid{3, "10.20.0.11", GidType::kRoceV2, "bond0"}));
  RecordedMachine only_local("roce-bond");
  only_local.add(
      "facts/verbs = port mlx5_bond_0 1 active lid 0 mtu 1024|"
      "gid mlx5_bond_0 1 1 fe80::e42:a1ff:fe11:2200 roce-v2 bond0");
  const auto plain = found(only_local).nics.front();
  EXPECT_EQ(plain.layer, NicLayer::kEthernet);
  EXPECT_EQ(plain.name, "bond0");
  EXPECT_EQ(plain.mtu_bytes, 9000u);
  EXPECT_THAT(plain.remark, HasSubstr("no routable RoCE address"));
}

TEST(Nics, TheUsersGidIndexIsTaken) {
  const RecordedMachine machine("roce-bond");
  EXPECT_EQ(found(machine, {2}).nics.front().gid->type, GidType::kRoceV1);
  const auto none = found(machine, {9}).nics.front();
  EXPECT_EQ(none.layer, NicLayer::kEthernet);
  EXPECT_THAT(none.remark, HasSubstr("NCCL_IB_GID_INDEX=9"));
}

TEST(Nics, NamesMayDifferBetweenHosts) {
  const auto one = found("roce-bond").nics.front();
  const auto other = found("roce-bond-renamed").nics.front();
  EXPECT_NE(one.name, other.name);
  EXPECT_NE(one.interface, other.interface);
  EXPECT_EQ(one.layer, other.layer);
  EXPECT_EQ(one.subnet, other.subnet);
}

TEST(Nics, WithoutRdmaAndWithANameThatIsLoopback) {
  const auto nics = found("no-rdma");
  EXPECT_THAT(used(nics), ElementsAre("eth0 ethernet"));
  EXPECT_EQ(named(nics, "eth0").gbit_s, 0) << "-1 means unknown";
  EXPECT_THAT(named(nics, "eth0").addresses, ElementsAre(InterfaceAddress{"eth0", "10.4.0.7", 24},
                                                         InterfaceAddress{"eth0", "fd00::7", 64}));
  EXPECT_EQ(named(nics, "eth0").numa_node, 0) << "known to the PCI device above virtio's";
  EXPECT_EQ(named(nics, "eth1").left_out, "no carrier");
  EXPECT_EQ(named(nics, "ifb0").left_out, "no carrier");
  ASSERT_EQ(nics.remarks.size(), 1u);
  EXPECT_THAT(nics.remarks.front(), HasSubstr("cloud-7 is 127.0.1.1 here"));
}

TEST(Nics, AContainerSeesItsOwnOnly) {
  const auto nics = found("container");
  EXPECT_THAT(used(nics), ElementsAre("mlx5_2 roce", "eth0 ethernet"));
  EXPECT_EQ(named(nics, "mlx5_2").gid, (Gid{5, "10.30.0.5", GidType::kRoceV2, "net1"}));
  EXPECT_THAT(named(nics, "mlx5_9").left_out, HasSubstr("libibverbs does not see it"));
}

TEST(Nics, WithoutLibibverbsRdmaIsNotUsed) {
  RecordedMachine machine("container");
  machine.add("facts/verbs = absent libibverbs.so.1 cannot be loaded");
  const auto nics = found(machine);
  EXPECT_THAT(used(nics), ElementsAre("net1 ethernet", "eth0 ethernet"));
  EXPECT_THAT(named(nics, "net1").remark, HasSubstr("cannot be loaded"));
}

TEST(Nics, PortsOfOneAdapterDiffer) {
  const auto nics = found("two-port-adapter");
  EXPECT_THAT(used(nics), ElementsAre("mlx4_0-p2 roce", "br0 ethernet", "ens3d1.100 ethernet"));
  EXPECT_THAT(named(nics, "mlx4_0-p1").left_out, HasSubstr("no subnet manager"));
  EXPECT_EQ(named(nics, "mlx4_0-p2").interface, "ens3d1");
  EXPECT_THAT(named(nics, "mlx4_0-p2").remark, HasSubstr("RoCE version 1 only"));
  EXPECT_THAT(named(nics, "br0").members, ElementsAre("eno1"));
  EXPECT_EQ(named(nics, "eno1").left_out, "port of bridge br0");
  EXPECT_EQ(named(nics, "ens3d1.100").remark, "shares the port of ens3d1");
  EXPECT_EQ(named(nics, "ens3d1.200").left_out, "no address");
  EXPECT_THAT(named(nics, "tun0").left_out, HasSubstr("virtual interface"));
  EXPECT_TRUE(named(nics, "tun0").by_choice);
  EXPECT_FALSE(named(nics, "ens3d1.200").by_choice);
}

TEST(Nics, AFolderThatIsNoMachineIsRefused) {
  const holmes::testing::TemporaryFolder empty;
  const auto facts = recorded_facts(empty.path());
  ASSERT_TRUE(facts);
  const auto nics = find_nics(*facts, {});
  ASSERT_FALSE(nics);
  EXPECT_EQ(nics.error().code(), ErrorCode::kNotFound);
}

TEST(Nics, BadFactsNameTheirLine) {
  RecordedMachine machine("no-rdma");
  for (const auto& [file, text] : std::vector<std::pair<std::string, std::string>>{
           {"facts/addresses", "eth0 10.0.0.1/24|eth0 10.0.0.1/33"},
           {"facts/addresses", "eth0 10.0.0.1/24|eth0 ten/24"},
           {"facts/verbs", "absent no|port mlx5_0 one active"},
           {"facts/verbs", "absent no|gid mlx5_0 1 0 fe80::1 roce-v9"}}) {
    machine.add(file + " = " + text);
    const auto facts = recorded_facts(machine.path());
    ASSERT_FALSE(facts) << text;
    EXPECT_THAT(facts.error().message(), HasSubstr(file + ":2"));
    machine.add(file + " = ");
  }
}

TEST(Nics, ThisMachineCanBeRead) {
  const auto facts = machine_facts();
  ASSERT_TRUE(facts) << facts.error().message();
  const auto nics = find_nics(*facts, {});
  ASSERT_TRUE(nics) << nics.error().message();
  EXPECT_THAT(named(*nics, "lo").left_out, HasSubstr("loopback"));
  EXPECT_THAT(nics->nics, ::testing::Not(IsEmpty()));
}

}  // namespace
}  // namespace holmes::transport
