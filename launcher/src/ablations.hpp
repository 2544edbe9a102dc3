#pragma once

// What of the method is taken away, or done otherwise, for a prediction: flags of plan and
// simulate.

#include "holmes/actors/job_config.hpp"
#include "holmes/partition/search.hpp"

namespace holmes::launcher {

struct Ablations {
  bool self_adapting = true;         ///< False: equal blocks for all stages.
  bool overlapped_optimizer = true;  ///< False: gradients are exchanged after the last pass.
  bool nic_selection = true;         ///< False: everything on the fabric that all hosts have.
  bool overlapped_transfers = true;  ///< False: who sends waits until it is delivered.
};

/// How the job's plan is made and priced.
partition::SearchOptions search_options(const actors::JobConfig& job, const Ablations& ablations);

}  // namespace holmes::launcher
