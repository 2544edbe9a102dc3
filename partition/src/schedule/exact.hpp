#pragma once

// The best orders of a small pipeline, by branch and bound over active schedules (Giffler and
// Thompson 1960): what generate() is measured against. Exponential: a few stages and micro-batches.

#include <optional>

#include "schedule/generate.hpp"

namespace holmes::partition {

/// Every channel must be used by one station only, and payloads must not block who sends them.
/// `within_s`: the end of an order that is known; nothing is found if none is sooner, then that one
/// is the best. Nothing, too, after `nodes_max` nodes: `*complete` tells which.
std::optional<Ordered> exact(const Pipeline& pipeline, bool split, double within_s,
                             std::size_t nodes_max, bool* complete);

}  // namespace holmes::partition
