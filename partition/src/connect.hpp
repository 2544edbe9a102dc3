#pragma once

// Groups and edges of a plan, which follow from its stages.

#include <vector>

#include "holmes/partition/plan.hpp"

namespace holmes::partition {

/// Adds the groups and edges that the stages of `plan` need, with their fabrics. kInvalidArgument
/// names hosts that share none.
Status connect(const Cluster& cluster, const std::vector<HostId>& hosts, bool tied_head,
               Plan& plan);

}  // namespace holmes::partition
