#pragma once

// Gathers the votes of one member and of the members below it in the vote tree, step by step, and
// folds them at the root. Pure bookkeeping. (The gradient-clipping exchange is the commit.)

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "holmes/base/result.hpp"
#include "messages.hpp"

namespace holmes::actors {

class VoteBox {
 public:
  /// `voters`: whose votes make a step complete here, the own one included.
  explicit VoteBox(std::vector<DeviceId> voters) : voters_(voters.begin(), voters.end()) {}

  /// Returns the merged vote once all voters' votes for its step are in. kCorrupt, with nothing
  /// changed: a second vote of one voter for a step, or one of somebody who has none here.
  Result<std::optional<Vote>> add(Vote vote);

 private:
  struct Gathering {
    std::set<DeviceId> voted;
    Vote merged;
  };
  std::set<DeviceId> voters_;
  std::map<Step, Gathering> by_step_;
};

/// Square root of the sum of all chunks' squares, in order of layer and chunk, in double: the same
/// bits whoever owned which chunk.
double fold_norm(const Vote& vote);
/// Mean loss of the step's micro-batches, summed in their order.
double fold_loss(const Vote& vote);

}  // namespace holmes::actors
