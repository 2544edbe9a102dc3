// Goal: a NIC of the cluster file gets the address that the machine has for it, or an error that
// helps. Method: machines as values.
#include "addresses.hpp"

#include <gmock/gmock.h>

namespace holmes::actors {
namespace {

using testing::HasSubstr;

transport::FoundNic found(const std::string& device, const std::string& interface,
                          const std::vector<std::string>& addresses) {
  transport::FoundNic nic;
  nic.name = device.empty() ? interface : device;
  nic.device = device;
  nic.interface = interface;
  for (const auto& address : addresses) nic.addresses.push_back({interface, address, 24});
  return nic;
}

Result<transport::FoundNics> machine() {
  transport::FoundNics machine;
  machine.nics = {found("mlx5_0", "ib0", {"fd00::7", "10.1.0.7"}), found("", "eth0", {"10.0.0.7"}),
                  found("", "eth1", {})};
  machine.nics[1].members = {"eno1"};
  return machine;
}

struct Wanted {
  std::string nic;
  std::string nic_address;
  std::string host_address;
  std::size_t nics = 1;
};
Result<std::string> address_of(const Wanted& wanted) {
  partition::Host host;
  host.name = "b1";
  host.address = wanted.host_address;
  partition::Nic nic;
  nic.name = wanted.nic;
  nic.address = wanted.nic_address;
  host.nics.assign(wanted.nics, nic);
  return interface_address(host, nic, machine);
}

TEST(Addresses, TheClusterFileGoesFirst) {
  EXPECT_EQ(*address_of({"eth0", "10.9.9.9", "10.8.8.8"}), "10.9.9.9");
}

TEST(Addresses, AnInterfaceIsFoundByAnyOfItsNames) {
  EXPECT_EQ(*address_of({"eth0", "", "10.8.8.8"}), "10.0.0.7");
  EXPECT_EQ(*address_of({"ib0", "", ""}), "10.1.0.7");
  EXPECT_EQ(*address_of({"mlx5_0", "", ""}), "10.1.0.7");
  EXPECT_EQ(*address_of({"eno1", "", ""}), "10.0.0.7");
}

TEST(Addresses, TheHostsServesWhereNoInterfaceHasTheName) {
  EXPECT_EQ(*address_of({"fast0", "", "10.8.8.8"}), "10.8.8.8");
  EXPECT_EQ(*address_of({"eth1", "", "10.8.8.8"}), "10.8.8.8");
}

TEST(Addresses, SeveralNicsDoNotShareTheHosts) {
  EXPECT_FALSE(address_of({"fast0", "", "10.8.8.8", 2}));
}

TEST(Addresses, WithoutAnyTheErrorSaysWhatThereIs) {
  const auto address = address_of({"fast0", "", ""});
  ASSERT_FALSE(address);
  EXPECT_THAT(address.error().message(), HasSubstr("NIC fast0 of host b1 has no address"));
  EXPECT_THAT(address.error().message(), HasSubstr("it has mlx5_0 (10.1.0.7), eth0 (10.0.0.7)"));
}

}  // namespace
}  // namespace holmes::actors
