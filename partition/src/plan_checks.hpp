#pragma once

// What the planner asks of its input and validate() of anybody's plan.

#include "holmes/partition/plan.hpp"

namespace holmes::partition {

/// More leaves bring nothing but partial sums to send.
constexpr std::uint32_t kLeavesMax = 1024;
constexpr std::uint32_t kMicroBatchesMax = 1U << 20;

/// Hosts that exchange activations with another host between stages `from` and `from` + 1: those
/// of leaves whose two owners are on different hosts. Duplicates are possible.
std::vector<HostId> talking_hosts(const std::vector<HostId>& host_of, const Plan& plan,
                                  std::size_t from);

}  // namespace holmes::partition
