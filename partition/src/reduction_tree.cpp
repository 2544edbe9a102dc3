#include "holmes/partition/reduction_tree.hpp"

#include <algorithm>
#include <bit>

#include "holmes/base/assert.hpp"

namespace holmes::partition {
namespace {

void check(std::uint32_t leaf_count, LeafRange leaves) {
  HOLMES_ASSERT(leaves.first <= leaves.last && leaves.last < leaf_count, "leaves out of range");
}

}  // namespace

std::vector<TreeNode> maximal_subtrees(std::uint32_t leaf_count, LeafRange leaves) {
  check(leaf_count, leaves);
  std::vector<TreeNode> nodes;
  std::uint32_t first = leaves.first;
  while (first <= leaves.last) {
    // The largest subtree that begins at `first`, is aligned there, and ends within the range.
    std::uint32_t size = 1;
    TreeNode node = leaf_node(leaf_count, first);
    while (first % (2 * size) == 0 && first + 2 * size - 1 <= leaves.last) {
      size *= 2;
      node = parent(node);
    }
    nodes.push_back(node);
    first += size;
  }
  return nodes;
}

std::uint32_t buffers_needed(std::uint32_t leaf_count, LeafRange leaves) {
  check(leaf_count, leaves);
  std::uint32_t most = 0;
  for (const TreeNode node : maximal_subtrees(leaf_count, leaves)) {
    // A subtree of 2^k leaves: while its last leaf is filled one node of each height below k waits.
    const auto height = static_cast<std::uint32_t>(std::bit_width(std::bit_ceil(leaf_count)) -
                                                   std::bit_width(node));
    most = std::max(most, height + 1);
  }
  return most;
}

}  // namespace holmes::partition
