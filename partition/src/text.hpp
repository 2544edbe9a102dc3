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

/// Who set Nic::use to false: a variable with its value, or the cluster file.
std::string keeper(const Nic& nic);

/// "a0", or "a0/3" where the host has several devices, numbered from 0 within it.
std::string device_name(const Cluster& cluster, DeviceId device);
/// "a0/0-7": `count` devices of one host from `first` on.
std::string devices_name(const Cluster& cluster, DeviceId first, std::size_t count);

/// "a0 has ib0 on ib-a, eth0 on ethernet".
std::string nics_of(const Cluster& cluster, HostId host);

}  // namespace holmes::partition
