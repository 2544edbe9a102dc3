// Goal: addresses are told apart and joined with ports, IPv4 and IPv6. Method: examples.
#include "holmes/base/address.hpp"

#include <gtest/gtest.h>

namespace holmes {
namespace {

TEST(Address, LoopbackIsWhatOnlyThisMachineReaches) {
  for (const char* here : {"", "localhost", "127.0.0.1", "127.9.1.1", "::1", "[::1]"})
    EXPECT_TRUE(is_loopback(here)) << here;
  for (const char* elsewhere : {"10.0.0.1", "a0", "fd00::1", "12.7.0.1", "0.0.0.0", "::"})
    EXPECT_FALSE(is_loopback(elsewhere)) << elsewhere;
}

TEST(Address, PortsComeAfterBracketsInIpv6) {
  EXPECT_EQ(with_port("10.0.0.1", 4000), "10.0.0.1:4000");
  EXPECT_EQ(with_port("fd00::2", 0), "[fd00::2]:0");
  EXPECT_EQ(with_port("[fd00::2]", 80), "[fd00::2]:80");
}

}  // namespace
}  // namespace holmes
