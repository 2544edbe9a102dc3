#include "holmes/partition/split.hpp"

#include <algorithm>
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

/// Speeds that differ by rounding only are equal.
bool all_equal(std::span<const double> speeds) {
  const auto [least, most] = std::minmax_element(speeds.begin(), speeds.end());
  return *least >= *most * (1 - 1e-9);
}

/// Most leaves of each replica when the slowest is as fast as possible.
std::vector<std::uint32_t> most_leaves(std::uint32_t leaf_count, std::span<const double> speeds) {
  std::vector<std::uint32_t> counts(speeds.size(), 1);
  for (std::size_t dealt = speeds.size(); dealt < leaf_count; ++dealt) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < speeds.size(); ++i) {
      if ((counts[i] + 1) * speeds[best] < (counts[best] + 1) * speeds[i]) best = i;
    }
    ++counts[best];
  }
  double slowest = 0;
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    slowest = std::max(slowest, counts[i] / speeds[i]);
  }
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    const double most = std::min(slowest * speeds[i], 1.0 * leaf_count);
    counts[i] = std::max(counts[i], floor_count(most));
  }
  return counts;
}

/// How many maximal subtrees leaves [first, end) have.
std::uint32_t partial_sums(std::uint32_t first, std::uint32_t end) {
  std::uint32_t count = 0;
  while (first < end) {
    std::uint32_t size = 1;
    while (first % (2 * size) == 0 && first + 2 * size <= end) size *= 2;
    first += size;
    ++count;
  }
  return count;
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
    // Equal but for rounding counts as equal.
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

std::vector<LeafRange> split_leaves(std::uint32_t leaf_count, std::span<const double> speeds) {
  const auto replicas = static_cast<std::uint32_t>(speeds.size());
  HOLMES_ASSERT(replicas > 0 && replicas <= leaf_count, "each replica needs a leaf");
  if (all_equal(speeds)) return split_leaves(leaf_count, replicas);
  const auto most = most_leaves(leaf_count, speeds);
  // cost[r][end]: fewest partial sums of the first r replicas when they have the leaves before
  // `end`; size[r][end]: leaves of the last of them.
  constexpr auto kNever = std::numeric_limits<std::uint32_t>::max();
  const std::size_t width = leaf_count + std::size_t{1};
  std::vector<std::uint32_t> cost((replicas + std::size_t{1}) * width, kNever);
  std::vector<std::uint32_t> size(cost.size(), 0);
  cost[0] = 0;
  for (std::uint32_t r = 0; r < replicas; ++r) {
    for (std::uint32_t first = r; first < leaf_count; ++first) {
      const std::uint32_t before = cost[r * width + first];
      if (before == kNever) continue;
      const std::uint32_t last = std::min(first + most[r], leaf_count);
      for (std::uint32_t end = first + 1; end <= last; ++end) {
        const std::size_t at = (r + std::size_t{1}) * width + end;
        const std::uint32_t all = before + partial_sums(first, end);
        if (all >= cost[at]) continue;
        cost[at] = all;
        size[at] = end - first;
      }
    }
  }
  std::vector<LeafRange> runs(replicas);
  std::uint32_t end = leaf_count;
  for (std::uint32_t r = replicas; r-- > 0;) {
    const std::uint32_t count = size[(r + std::size_t{1}) * width + end];
    HOLMES_ASSERT(count > 0, "the leaves can be dealt");
    runs[r] = {end - count, end - 1};
    end -= count;
  }
  return runs;
}

}  // namespace holmes::partition
