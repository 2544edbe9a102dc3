#pragma once

// Orders for a pipeline whose delays are known: greedy list scheduling under many rules, beside the
// published schedules at every depth, then exchanges of neighbouring passes. Deterministic.

#include "schedule/pipeline.hpp"

namespace holmes::partition {

struct Ordered {
  Orders orders;
  double end_s = 0;  ///< Of the last pass.
};

struct GenerateOptions {
  bool split = false;
  std::size_t passes_max = 200'000;  ///< That all tries together may play.
};

/// All that was tried and can be executed, soonest end first, without repetition.
std::vector<Ordered> generate(const Pipeline& pipeline, const GenerateOptions& options);

}  // namespace holmes::partition
