#pragma once

// Which hosts of a cluster file take part in a job, and with how many of their devices.

#include <vector>

#include "holmes/actors/job_config.hpp"

namespace holmes::actors {

/// Keeps the chosen hosts of `cluster`, in the order in which they were chosen. kInvalidArgument: a
/// host that is not there or is named twice, or more slots than it has devices.
Status choose_hosts(const std::vector<HostChoice>& choices, partition::Cluster& cluster);

}  // namespace holmes::actors
