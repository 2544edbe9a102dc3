#pragma once

// Who keeps a copy of whose shards in a job.

#include "holmes/actors/job_config.hpp"
#include "holmes/partition/keepers.hpp"

namespace holmes::actors {

using partition::Keepers;
/// None where a job is to end when a host is lost.
inline Keepers keepers_of(const partition::Plan& plan, const JobConfig& job) {
  return job.resilience.on_loss == OnLoss::kContinue ? partition::keepers_of(plan, job.cluster)
                                                     : Keepers{};
}

}  // namespace holmes::actors
