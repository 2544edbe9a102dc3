// Goal: however leaves are dealt and in whatever order partial sums arrive, the same additions
// happen in the same tree. Method: sums are strings that show their brackets.
#include "holmes/partition/reduction_tree.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "holmes/base/random.hpp"

namespace holmes::partition {
namespace {

/// The whole sum, as in "((0+1)+(2+3))".
std::string whole_sum(std::uint32_t leaf_count, TreeNode node) {
  if (node >= leaf_count) return std::to_string(node - leaf_count);
  return "(" + whole_sum(leaf_count, 2 * node) + "+" + whole_sum(leaf_count, 2 * node + 1) + ")";
}

/// Adds siblings as soon as both are here, up to the nodes in `kept`.
struct Adder {
  std::vector<TreeNode> kept{1};
  std::map<TreeNode, std::string> sums{};

  /// Returns the node that `node` has become part of.
  TreeNode arrive(TreeNode node, std::string sum) {
    const auto other = sums.find(sibling(node));
    const bool ends = std::find(kept.begin(), kept.end(), node) != kept.end();
    if (ends || other == sums.end()) {
      EXPECT_TRUE(sums.emplace(node, std::move(sum)).second);
      return node;
    }
    const std::string pair = is_left(node) ? "(" + sum + "+" + other->second + ")"
                                           : "(" + other->second + "+" + sum + ")";
    sums.erase(other);
    return arrive(parent(node), pair);
  }
};

TEST(ReductionTree, MaximalSubtrees) {
  using Nodes = std::vector<TreeNode>;
  EXPECT_EQ(maximal_subtrees(8, {0, 7}), (Nodes{1}));
  EXPECT_EQ(maximal_subtrees(8, {0, 3}), (Nodes{2}));
  EXPECT_EQ(maximal_subtrees(8, {4, 7}), (Nodes{3}));
  EXPECT_EQ(maximal_subtrees(8, {1, 6}), (Nodes{9, 5, 6, 14}));
  EXPECT_EQ(maximal_subtrees(8, {0, 2}), (Nodes{4, 10}));
  EXPECT_EQ(maximal_subtrees(1, {0, 0}), (Nodes{1}));
}

TEST(ReductionTree, BuffersNeeded) {
  EXPECT_EQ(buffers_needed(1, {0, 0}), 1U);
  EXPECT_EQ(buffers_needed(8, {3, 3}), 1U);
  EXPECT_EQ(buffers_needed(8, {0, 1}), 2U);
  EXPECT_EQ(buffers_needed(8, {0, 3}), 3U);
  EXPECT_EQ(buffers_needed(8, {0, 7}), 4U);
  EXPECT_EQ(buffers_needed(8, {1, 2}), 1U);
}

TEST(ReductionTree, BuffersNeededIsWhatAReplicaUses) {
  for (std::uint32_t leaves = 1; leaves <= 32; leaves *= 2) {
    for (std::uint32_t first = 0; first < leaves; ++first) {
      for (std::uint32_t last = first; last < leaves; ++last) {
        const auto subtrees = maximal_subtrees(leaves, {first, last});
        Adder adder{subtrees};
        std::uint32_t sent = 0;
        std::uint32_t most = 0;
        for (std::uint32_t leaf = first; leaf <= last; ++leaf) {
          most = std::max(most, static_cast<std::uint32_t>(adder.sums.size()) + 1);
          const TreeNode node = adder.arrive(leaf_node(leaves, leaf), "");
          if (std::find(subtrees.begin(), subtrees.end(), node) == subtrees.end()) continue;
          adder.sums.erase(node);
          ++sent;
        }
        EXPECT_EQ(sent, subtrees.size());
        EXPECT_EQ(buffers_needed(leaves, {first, last}), most);
        const std::uint32_t k = last - first + 1;
        EXPECT_LE(most, 1U + static_cast<unsigned>(std::bit_width(k - 1)));
      }
    }
  }
}

TEST(ReductionTree, SameBracketsWhoeverComputesWhat) {
  Random random(11);
  for (int round = 0; round < 2000; ++round) {
    const std::uint32_t leaves = 1U << random.below(6);
    // Random cuts into replicas; each sends its maximal subtrees, in any order.
    std::vector<TreeNode> partials;
    for (std::uint32_t first = 0; first < leaves;) {
      const auto last = static_cast<std::uint32_t>(first + random.below(leaves - first));
      for (const TreeNode node : maximal_subtrees(leaves, {first, last})) partials.push_back(node);
      first = last + 1;
    }
    for (std::size_t i = partials.size(); i > 1; --i) {
      std::swap(partials[i - 1], partials[random.below(i)]);
    }
    Adder adder;
    for (const TreeNode node : partials) adder.arrive(node, whole_sum(leaves, node));
    ASSERT_EQ(adder.sums.size(), 1U);
    EXPECT_EQ(adder.sums.at(1), whole_sum(leaves, 1));
  }
}

}  // namespace
}  // namespace holmes::partition
