#pragma once

// How the agents of `holmes launch` start on their hosts: by ssh, by srun, by others, or here.

#include "console.hpp"
#include "slurm.hpp"
#include "train.hpp"

namespace holmes::launcher {

/// Also settles where in `job` the coordinator listens. May block for seconds while names are
/// looked up. `slurm` is empty but for LaunchVia::kSlurm.
Result<AgentStart> agent_start(const LaunchCommand& command, const SlurmAllocation& slurm,
                               actors::JobConfig& job, Console& console);

}  // namespace holmes::launcher
