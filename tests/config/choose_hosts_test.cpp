// Goal: a job runs on the hosts that were chosen, in their order, and nothing else of the cluster
// changes. Method: choices against a cluster of three.
#include "config/choose_hosts.hpp"

#include <gmock/gmock.h>

namespace holmes::actors {
namespace {

using testing::HasSubstr;

partition::Cluster three_hosts() {
  partition::Cluster cluster;
  for (const char* name : {"a0", "a1", "b0"}) {
    partition::Host host;
    host.name = name;
    host.devices.resize(4);
    host.nics.resize(2);
    host.nics[0].near = {0, 1};
    host.nics[1].near = {2, 3};
    cluster.hosts.push_back(host);
  }
  cluster.hosts[2].address = "10.0.0.3";
  return cluster;
}

std::string error_of(const std::vector<HostChoice>& choices) {
  auto cluster = three_hosts();
  const auto chosen = choose_hosts(choices, cluster);
  return chosen ? "" : chosen.error().message();
}

TEST(ChooseHosts, KeepsTheOrderOfTheChoices) {
  auto cluster = three_hosts();
  ASSERT_TRUE(choose_hosts({{"10.0.0.3"}, {"a0"}}, cluster));
  ASSERT_EQ(cluster.hosts.size(), 2U);
  EXPECT_EQ(cluster.hosts[0], three_hosts().hosts[2]);
  EXPECT_EQ(cluster.hosts[1], three_hosts().hosts[0]);
}

TEST(ChooseHosts, SlotsAreTheFirstDevices) {
  auto cluster = three_hosts();
  ASSERT_TRUE(choose_hosts({{"a1", 3}}, cluster));
  EXPECT_EQ(cluster.hosts[0].devices.size(), 3U);
  EXPECT_THAT(cluster.hosts[0].nics[0].near, testing::ElementsAre(0, 1));
  EXPECT_THAT(cluster.hosts[0].nics[1].near, testing::ElementsAre(2));
}

TEST(ChooseHosts, ANicNearNoneThatIsUsedServesThemAll) {
  auto cluster = three_hosts();
  ASSERT_TRUE(choose_hosts({{"a1", 2}}, cluster));
  EXPECT_TRUE(cluster.hosts[0].nics[1].near.empty());
}

TEST(ChooseHosts, WhatMakesNoSenseIsSaid) {
  EXPECT_THAT(error_of({{"a2"}}), HasSubstr("no host named a2; did you mean 'a"));
  EXPECT_THAT(error_of({{"a0"}, {"a0"}}), HasSubstr("a0 is named twice"));
  EXPECT_THAT(error_of({{"b0"}, {"10.0.0.3"}}), HasSubstr("b0 is named twice"));
  EXPECT_THAT(error_of({{"a0", 5}}), HasSubstr("slots=5, but the cluster file gives it 4 devices"));
}

}  // namespace
}  // namespace holmes::actors
