#pragma once

// Who keeps a copy of whose shards: the next replica of the stage on another host,
// else a device of another stage. A pure function of the plan, so that nobody needs to be told.

#include <map>

#include "holmes/partition/cluster.hpp"
#include "holmes/partition/plan.hpp"

namespace holmes::partition {

/// Keepers by owner. Owners without one (all members are on their host, or none on another host
/// shares a fabric with them) are missing.
using Keepers = std::map<DeviceId, DeviceId>;
Keepers keepers_of(const Plan& plan, const Cluster& cluster);

}  // namespace holmes::partition
