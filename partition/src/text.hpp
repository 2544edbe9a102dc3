#pragma once

// Small helpers for messages.

#include <string>
#include <string_view>
#include <vector>

#include "holmes/partition/cluster.hpp"

namespace holmes::partition {

/// Shortest usual form: 0.5, 200, 1e+06.
std::string number(double value);

/// "1 device", "2 devices".
std::string counted(std::size_t count, std::string_view noun);

/// "a, b, c".
std::string joined(const std::vector<std::string>& parts);

/// "a0 has ib0 on ib-a, eth0 on ethernet".
std::string nics_of(const Cluster& cluster, HostId host);

}  // namespace holmes::partition
