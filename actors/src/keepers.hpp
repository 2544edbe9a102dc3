#pragma once

// Who keeps a copy of whose shards (DETAILS G2): the next replica of the stage on another host,
// else a device of another stage. A pure function of the plan, so that nobody needs to be told.

#include <map>

#include "holmes/actors/job_config.hpp"
#include "holmes/partition/cluster.hpp"
#include "holmes/partition/plan.hpp"

namespace holmes::actors {

/// Keepers by owner. Owners without one (all members are on their host, or none on another host
/// shares a fabric with them) are missing.
using Keepers = std::map<DeviceId, DeviceId>;
Keepers keepers_of(const partition::Plan& plan, const partition::Cluster& cluster);
/// None where a job is to end when a host is lost.
Keepers keepers_of(const partition::Plan& plan, const JobConfig& job);

}  // namespace holmes::actors
