#pragma once

// The published schedules as words for any pipeline: what a generated order must never be slower
// than, and where it starts from.

#include "schedule/pipeline.hpp"

namespace holmes::partition {

struct Seed {
  std::uint32_t extra = 0;  ///< Forwards ahead beyond those of 1F1B; many: GPipe.
  bool split = false;
  /// Split: weight passes come so many backwards later; kByStage: as many as stages are before, as
  /// in ZB-H1.
  std::uint32_t late = 0;
  static constexpr std::uint32_t kByStage = ~std::uint32_t{0};
};

/// 1F1B, zero-bubble or interleaved (by the pipeline's chunks), within what stations may hold.
Orders seed_orders(const Pipeline& pipeline, const Seed& seed);

/// One forward, one backward after `depth` forwards of each station.
Orders orders_of_depths(const Pipeline& pipeline, const std::vector<std::uint32_t>& depths,
                        bool split, std::uint32_t late);

/// Micro-batches that a station must have under way so that it never waits, if each stage took as
/// long as the slowest: what comes back from behind it after a round trip.
std::vector<std::uint32_t> round_trip_depths(const Pipeline& pipeline);

/// Every depth and both kinds of backward, without repetition.
std::vector<Orders> all_seeds(const Pipeline& pipeline, bool split, std::size_t most);

}  // namespace holmes::partition
