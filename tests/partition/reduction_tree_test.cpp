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

std::string whole_sum(std::uint32_t leaf_count, TreeNode node) {
  if (node >= leaf_count) return std::to_string(node - leaf_count);
  return "(" + whole_sum(leaf_count, 2 * node) + "+" + whole_sum(leaf_count, 2 * node + 1) + ")";
}

/// A TreeSum together with the sums it keeps books of.
struct Adder {
  explicit Adder(std::uint32_t leaf_count) : tree(leaf_count) {}
  void arrive(TreeNode node, std::string sum) {
    EXPECT_TRUE(tree.expects(node));
    sums[node] = std::move(sum);
    auto addition = tree.arrive(node);
    while (addition) {
      sums[addition->result] = "(" + sums.at(addition->left) + "+" + sums.at(addition->right) + ")";
      sums.erase(addition->left);
      sums.erase(addition->right);
      addition = tree.arrive(addition->result);
    }
    EXPECT_EQ(sums.size(), tree.present_count());
  }
  TreeSum tree;
  std::map<TreeNode, std::string> sums;
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
        TreeSum tree(leaves);
        std::uint32_t sent = 0;
        std::uint32_t most = 0;
        for (std::uint32_t leaf = first; leaf <= last; ++leaf) {
          most = std::max(most, tree.present_count() - sent + 1);
          TreeNode node = leaf_node(leaves, leaf);
          auto addition = tree.arrive(node);
          while (addition) {
            node = addition->result;
            addition = tree.arrive(node);
          }
          if (std::find(subtrees.begin(), subtrees.end(), node) != subtrees.end()) ++sent;
        }
        EXPECT_EQ(sent, subtrees.size());
        EXPECT_EQ(buffers_needed(leaves, {first, last}), most);
        const std::uint32_t k = last - first + 1;
        EXPECT_LE(most, 1U + static_cast<unsigned>(std::bit_width(k - 1)));
      }
    }
  }
}

TEST(TreeSum, SameBracketsWhoeverComputesWhat) {
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
    Adder adder(leaves);
    for (const TreeNode node : partials) {
      EXPECT_FALSE(adder.tree.complete());
      adder.arrive(node, whole_sum(leaves, node));
    }
    EXPECT_TRUE(adder.tree.complete());
    ASSERT_EQ(adder.sums.size(), 1U);
    EXPECT_EQ(adder.sums.at(1), whole_sum(leaves, 1));
  }
}

TEST(TreeSum, ExpectsOnlyWhatIsMissing) {
  TreeSum tree(4);
  EXPECT_FALSE(tree.expects(0));
  EXPECT_FALSE(tree.expects(8));
  EXPECT_TRUE(tree.expects(1));
  EXPECT_FALSE(tree.arrive(4));
  EXPECT_FALSE(tree.expects(4));
  EXPECT_FALSE(tree.expects(2));
  EXPECT_FALSE(tree.expects(1));
  EXPECT_TRUE(tree.expects(5));
  EXPECT_EQ(tree.arrive(5), (TreeSum::Addition{4, 5, 2}));
  EXPECT_FALSE(tree.arrive(2));
  EXPECT_FALSE(tree.expects(5));
  EXPECT_TRUE(tree.expects(3));
  EXPECT_EQ(tree.arrive(3), (TreeSum::Addition{2, 3, 1}));
  EXPECT_FALSE(tree.arrive(1));
  EXPECT_TRUE(tree.complete());
  tree.reset();
  EXPECT_FALSE(tree.complete());
  EXPECT_TRUE(tree.expects(4));
  EXPECT_EQ(tree.present_count(), 0U);
}

TEST(TreeSumDeathTest, TwiceIsABug) {
  TreeSum tree(2);
  std::ignore = tree.arrive(2);
  EXPECT_DEATH(std::ignore = tree.arrive(2), "arrives once");
  EXPECT_DEATH(std::ignore = tree.arrive(4), "out of range");
}

}  // namespace
}  // namespace holmes::partition
