#pragma once

// A plan for the hosts that are left. Constants of the job stay: batch, micro-batch
// and reduction leaves; stages, replicas and shares may change.

#include <vector>

#include "holmes/actors/job_config.hpp"
#include "holmes/partition/plan.hpp"

namespace holmes::actors {

/// `is_left` has one entry for each host of the job's cluster; the plan's ids are those of the
/// whole cluster. Degrees that were asked for are kept where that is possible, then fewer replicas
/// are used, then fewer stages. kInvalidArgument: why none of it is possible.
Result<partition::Plan> plan_for(const JobConfig& job, const partition::JobShape& shape,
                                 const std::vector<bool>& is_left);

}  // namespace holmes::actors
