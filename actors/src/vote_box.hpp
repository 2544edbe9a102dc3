#pragma once

// Gathers the votes of one member and of the members below it in the vote tree, step by step, and
// folds them at the root. Pure bookkeeping. (DETAILS G1: the gradient-clipping exchange is the
// commit.)

#include <cstddef>
#include <map>
#include <optional>

#include "messages.hpp"

namespace holmes::actors {

class VoteBox {
 public:
  /// `voters`: votes that make a step complete here, the own one included.
  explicit VoteBox(std::size_t voters) : voters_(voters) {}

  /// Returns the merged vote once all voters' votes for its step are in.
  std::optional<Vote> add(Vote vote);

 private:
  struct Gathering {
    std::size_t count = 0;
    Vote merged;
  };
  std::size_t voters_;
  std::map<Step, Gathering> by_step_;
};

/// Square root of the sum of all chunks' squares, in order of layer and chunk, in double: the same
/// bits whoever owned which chunk.
double fold_norm(const Vote& vote);
/// Mean loss of the step's micro-batches, summed in their order.
double fold_loss(const Vote& vote);

}  // namespace holmes::actors
