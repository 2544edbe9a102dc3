#pragma once

// Agents on the nodes of a Slurm allocation, by srun: no ssh, no MPI, no PMI. Slurm's own commands
// say what the allocation is; the variables that it sets for the first process of a job say which.
//
// Threads: plain functions, on the caller's thread; slurm_allocation() and node_address() may block
// for seconds.

#include <cstdint>
#include <string>
#include <vector>

#include "holmes/base/result.hpp"

namespace holmes::launcher {

struct SlurmNode {
  std::string name;
  std::uint32_t cpus = 1;  ///< Of the allocation, there.
};

/// What this process was given to run on.
struct SlurmAllocation {
  std::vector<SlurmNode> nodes;
  bool again = false;  ///< The job was started before and put back into the queue.
};

/// From SLURM_JOB_NODELIST, SLURM_JOB_CPUS_PER_NODE and SLURM_RESTART_COUNT. kInvalidArgument: this
/// process is in no allocation; kUnavailable: Slurm's commands do not answer.
Result<SlurmAllocation> slurm_allocation();

/// "4(x2),8" is 4, 4, 8. kInvalidArgument.
Result<std::vector<std::uint32_t>> parse_cpus_per_node(const std::string& text);

/// Where Slurm reaches a node: NodeAddr of its configuration. kUnavailable.
Result<std::string> node_address(const std::string& node);

/// What srun starts on a node.
struct SlurmStep {
  std::string executable;                     ///< Path of holmes there.
  std::vector<std::string> environment = {};  ///< "NAME=VALUE", for the agents.
};

/// From argv[0] on, for /bin/sh: runs `words` as the agent of `node`, on all CPUs that the job has
/// there.
std::vector<std::string> srun_words(const SlurmStep& step, const SlurmNode& node,
                                    const std::vector<std::string>& words);

}  // namespace holmes::launcher
