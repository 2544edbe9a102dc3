#include "ablations.hpp"

namespace holmes::launcher {

partition::SearchOptions search_options(const actors::JobConfig& job, const Ablations& ablations) {
  partition::SearchOptions options;
  options.plan = job.parallel;
  options.cost = job.cost;
  if (!ablations.self_adapting) options.plan.split = partition::SplitRule::kEqual;
  if (!ablations.overlapped_optimizer &&
      options.cost.optimizer == partition::OptimizerKind::kOverlapped)
    options.cost.optimizer = partition::OptimizerKind::kSharded;
  if (!ablations.nic_selection) options.cost.nic_selection = false;
  if (!ablations.overlapped_transfers) options.cost.overlapped_transfers = false;
  return options;
}

}  // namespace holmes::launcher
