#pragma once

// Gradients of a step are summed over a fixed binary tree whose leaves are runs of micro-batches.
// The tree depends on the job only, so that a sum has the same bits whoever computes which leaf.
//
// Nodes are numbered as in a heap: the root is 1, the children of n are 2n and 2n+1, leaf i of R
// leaves is R + i. R is a power of two; plans that only a simulator sees may have fewer leaves, and
// then the right end of the tree is missing.

#include <bit>
#include <cstdint>
#include <vector>

#include "holmes/partition/plan.hpp"

namespace holmes::partition {

using TreeNode = std::uint32_t;

constexpr TreeNode leaf_node(std::uint32_t leaf_count, std::uint32_t leaf) {
  return std::bit_ceil(leaf_count) + leaf;
}
constexpr TreeNode parent(TreeNode node) {
  return node / 2;
}
constexpr TreeNode sibling(TreeNode node) {
  return node ^ 1U;
}
constexpr bool is_left(TreeNode node) {
  return node % 2 == 0;
}

/// The maximal subtrees that lie wholly within `leaves`, left to right: what a replica sends on.
std::vector<TreeNode> maximal_subtrees(std::uint32_t leaf_count, LeafRange leaves);

/// Most gradient buffers that a replica with `leaves` needs at once to add in tree order, its
/// leaves ascending: the one being filled and the finished nodes that wait for their sibling. A
/// finished maximal subtree counts no longer (it is on its way); who keeps all of them to the end
/// of the step needs up to maximal_subtrees().size() - 1 more. At most 1 + ceil(log2 of the
/// leaves).
std::uint32_t buffers_needed(std::uint32_t leaf_count, LeafRange leaves);

}  // namespace holmes::partition
