#include "holmes/partition/reduction_tree.hpp"

#include <algorithm>
#include <bit>

#include "holmes/base/assert.hpp"

namespace holmes::partition {
namespace {

void check(std::uint32_t leaf_count, LeafRange leaves) {
  HOLMES_ASSERT(std::has_single_bit(leaf_count), "leaves are a power of two");
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
    const auto height =
        static_cast<std::uint32_t>(std::bit_width(leaf_count) - std::bit_width(node));
    most = std::max(most, height + 1);
  }
  return most;
}

TreeSum::TreeSum(std::uint32_t leaf_count) : state_(2 * std::size_t{leaf_count}, State::kAbsent) {
  HOLMES_ASSERT(std::has_single_bit(leaf_count), "leaves are a power of two");
}

bool TreeSum::covered(TreeNode node) const {
  // Below `node`: what is present there has a descendant present or added, level by level.
  for (TreeNode first = node, last = node; first < state_.size(); first *= 2, last = 2 * last + 1) {
    const auto begin = state_.begin() + first;
    const auto end = state_.begin() + last + 1;
    if (std::any_of(begin, end, [](State s) { return s != State::kAbsent; })) return true;
  }
  return false;
}

bool TreeSum::expects(TreeNode node) const {
  if (node == 0 || node >= state_.size()) return false;
  for (TreeNode above = node / 2; above > 0; above /= 2) {
    if (state_[above] != State::kAbsent) return false;
  }
  return !covered(node);
}

std::optional<TreeSum::Addition> TreeSum::arrive(TreeNode node) {
  HOLMES_ASSERT(node > 0 && node < state_.size(), "node out of range");
  HOLMES_ASSERT(state_[node] == State::kAbsent, "a node arrives once");
  state_[node] = State::kPresent;
  ++present_count_;
  if (node == 1 || state_[sibling(node)] != State::kPresent) return std::nullopt;
  state_[node] = State::kAdded;
  state_[sibling(node)] = State::kAdded;
  present_count_ -= 2;
  const TreeNode left = is_left(node) ? node : sibling(node);
  return Addition{left, sibling(left), parent(left)};
}

void TreeSum::reset() {
  std::fill(state_.begin(), state_.end(), State::kAbsent);
  present_count_ = 0;
}

}  // namespace holmes::partition
