#pragma once

// Derived facts that explain() and to_json() share.

#include <string>
#include <vector>

#include "holmes/partition/plan.hpp"

namespace holmes::partition {

struct UnusedDevice {
  DeviceId device;
  std::string reason;
};
/// Devices of the cluster that do not train under the plan.
std::vector<UnusedDevice> unused_devices(const Plan& plan, const Cluster& cluster);

/// The largest number of replicas of any stage.
std::size_t data_degree(const Plan& plan);

}  // namespace holmes::partition
