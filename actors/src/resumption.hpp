#pragma once

// What a coordinator concludes from what the members of a superseded generation hold: the step to
// go on from, and who must send which state to whom. Pure functions.

#include <optional>
#include <vector>

#include "keepers.hpp"
#include "state.hpp"

namespace holmes::actors {

struct Resumption {
  Step first_step;                     ///< Updates that are committed.
  std::vector<CommittedStep> unheard;  ///< Commits that the coordinator learns of only now.
  std::optional<double> settle_norm;   ///< Of the last commit, where a member must still apply it.
};

/// A step is committed when anybody has seen its commit: the coordinator (`last_heard`; empty: it
/// has heard of none since `begun`, which the job began from), or a member that is left. One that
/// nobody left has seen is done again: nothing of the step before has been overwritten here.
Resumption resume_from(Step begun, const std::optional<CommittedStep>& last_heard,
                       const std::vector<CommittedStep>& seen, const std::vector<HeldState>& held);

/// Whether the state is of use to go on from `first_step`: at it, or one committed update behind.
bool is_usable(const HeldState& state, Step first_step);

/// What must go where before `plan` can begin, each piece from the nearest place that has it, the
/// burden shared. Empty: something is held by nobody that is left.
struct TransferInput {
  const partition::Plan& plan;
  const Keepers& keepers;
  const partition::Cluster& cluster;
  const model::GptConfig& model;
  const std::vector<LayerTable>& table;
  const std::vector<HeldState>& held;  ///< Usable ones.
};
std::optional<std::vector<StateTransfer>> state_transfers(const TransferInput& input);

}  // namespace holmes::actors
