#pragma once

// How many blocks each stage gets, and which leaves each replica. Pure arithmetic, used by the
// strategies of plan().

#include <cstdint>
#include <span>
#include <vector>

#include "holmes/partition/plan.hpp"

namespace holmes::partition {

/// Blocks of each stage, as equal as possible; the first stages take the remainder.
std::vector<std::uint32_t> split_equal(std::uint32_t blocks, std::uint32_t stages);

/// The paper's formula: the fastest stages get floor(alpha S(i) / sum S blocks), the others share
/// the rest in proportion to their speeds. All equal: split_equal(). Each stage gets at least one
/// block, so stages <= blocks; speeds and alpha are positive.
std::vector<std::uint32_t> split_by_speed(std::uint32_t blocks, std::span<const double> speeds,
                                          double alpha);

/// Runs of leaves for `replicas` replicas, in leaf order. Equal where `replicas` divides
/// `leaf_count`; else sizes differ by one and lie so that few partial sums must be sent.
/// 1 <= replicas <= leaf_count.
std::vector<LeafRange> split_leaves(std::uint32_t leaf_count, std::uint32_t replicas);

/// The same for replicas of unequal speed: the slowest replica (leaves / speed) is as fast as whole
/// leaves allow; of the runs that are, those with the fewest partial sums. Equal speeds: as above.
/// Speeds are positive; 1 <= replicas <= leaf_count.
std::vector<LeafRange> split_leaves(std::uint32_t leaf_count, std::span<const double> speeds);

}  // namespace holmes::partition
