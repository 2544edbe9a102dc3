#include "holmes/partition/split.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "holmes/base/assert.hpp"
#include "holmes/partition/reduction_tree.hpp"

namespace holmes::partition {
namespace {

/// `value` rounded down, where a product such as 0.55 x 20 that is whole but for rounding counts as
/// whole.
std::uint32_t floor_count(double value) {
  return static_cast<std::uint32_t>(std::floor(value + 1e-9));
}

/// Gives `rest` blocks to the stages in `members` in proportion to speed: floors first, each block
/// that is left to the stage that stays least loaded by it.
void share_rest(std::uint32_t rest, std::span<const std::size_t> members,
                std::span<const double> speeds, std::vector<std::uint32_t>& blocks) {
  double sum = 0;
  for (const std::size_t i : members) sum += speeds[i];
  std::uint32_t left = rest;
  for (const std::size_t i : members) {
    blocks[i] = std::min(floor_count(speeds[i] / sum * rest), left);
    left -= blocks[i];
  }
  for (; left > 0; --left) {
    const auto least = std::min_element(members.begin(), members.end(), [&](auto a, auto b) {
      return (blocks[a] + 1) / speeds[a] < (blocks[b] + 1) / speeds[b];
    });
    ++blocks[*least];
  }
}

/// Every stage gets a block, from the stage that has most.
void fill_empty(std::vector<std::uint32_t>& blocks) {
  for (std::uint32_t& count : blocks) {
    if (count > 0) continue;
    --*std::max_element(blocks.begin(), blocks.end());
    ++count;
  }
}

}  // namespace

std::vector<std::uint32_t> split_equal(std::uint32_t blocks, std::uint32_t stages) {
  HOLMES_ASSERT(stages > 0 && stages <= blocks, "each stage needs a block");
  std::vector<std::uint32_t> counts(stages, blocks / stages);
  for (std::uint32_t i = 0; i < blocks % stages; ++i) ++counts[i];
  return counts;
}

std::vector<std::uint32_t> split_by_speed(std::uint32_t blocks, std::span<const double> speeds,
                                          double alpha) {
  HOLMES_ASSERT(!speeds.empty() && speeds.size() <= blocks, "each stage needs a block");
  const double fastest = *std::max_element(speeds.begin(), speeds.end());
  const double sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  HOLMES_ASSERT(fastest > 0 && std::isfinite(sum / fastest), "speeds are positive and finite");
  std::vector<std::uint32_t> counts(speeds.size(), 0);
  std::vector<std::size_t> others;
  std::uint32_t left = blocks;
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    // Speeds that differ by rounding only are equal.
    if (speeds[i] < fastest * (1 - 1e-9)) {
      others.push_back(i);
      continue;
    }
    const double wanted = std::min(alpha * speeds[i] / sum * blocks, 1.0 * blocks);
    counts[i] = std::min(floor_count(wanted), left);
    left -= counts[i];
  }
  if (others.empty()) return split_equal(blocks, static_cast<std::uint32_t>(speeds.size()));
  share_rest(left, others, speeds, counts);
  fill_empty(counts);
  return counts;
}

std::vector<LeafRange> split_leaves(std::uint32_t leaf_count, std::uint32_t replicas) {
  HOLMES_ASSERT(std::has_single_bit(leaf_count), "leaves are a power of two");
  HOLMES_ASSERT(replicas > 0 && replicas <= leaf_count, "each replica needs a leaf");
  const std::uint32_t each = leaf_count / replicas;
  const std::uint32_t longer = leaf_count % replicas;
  // cost[r][l]: fewest partial sums of the replicas from r on, when l longer runs came before.
  constexpr auto kNever = std::numeric_limits<std::uint32_t>::max() / 2;
  const std::size_t width = longer + std::size_t{2};
  std::vector<std::uint32_t> cost((replicas + std::size_t{1}) * width, kNever);
  cost[replicas * width + longer] = 0;
  const auto run = [&](std::uint32_t r, std::uint32_t l, std::uint32_t extra) {
    const std::uint32_t first = r * each + l;
    return LeafRange{first, first + each + extra - 1};
  };
  const auto with = [&](std::uint32_t r, std::uint32_t l, std::uint32_t extra) {
    const std::uint32_t rest = cost[(r + std::size_t{1}) * width + l + extra];
    if (rest >= kNever) return kNever;
    return rest + static_cast<std::uint32_t>(maximal_subtrees(leaf_count, run(r, l, extra)).size());
  };
  for (std::uint32_t r = replicas; r-- > 0;) {
    for (std::uint32_t l = 0; l <= std::min(r, longer); ++l) {
      cost[r * width + l] = std::min(with(r, l, 1), with(r, l, 0));
    }
  }
  std::vector<LeafRange> runs;
  for (std::uint32_t r = 0, l = 0; r < replicas; ++r) {
    const std::uint32_t extra = with(r, l, 1) <= with(r, l, 0) ? 1 : 0;
    runs.push_back(run(r, l, extra));
    l += extra;
  }
  return runs;
}

}  // namespace holmes::partition
