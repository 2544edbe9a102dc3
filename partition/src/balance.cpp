#include "holmes/partition/balance.hpp"

#include <algorithm>
#include <cmath>

#include "holmes/base/assert.hpp"
#include "text.hpp"

namespace holmes::partition {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kGib = 1024.0 * 1024 * 1024;

/// What layers [first, end) cost at a stage, in constant time.
class Costs {
 public:
  Costs(std::span<const BalanceLayer> layers, std::span<const BalanceStage> stages)
      : stages_(stages), sums_(layers.size() + 1) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      sums_[i + 1] = {sums_[i].work + layers[i].work, sums_[i].bytes + layers[i].bytes,
                      sums_[i].activation_bytes + layers[i].activation_bytes};
    }
  }

  std::size_t layers() const { return sums_.size() - 1; }
  std::size_t stages() const { return stages_.size(); }

  double bytes(std::size_t stage, std::size_t first, std::size_t end) const {
    const BalanceStage& at = stages_[stage];
    return at.fixed_bytes + at.bytes_scale * (sums_[end].bytes - sums_[first].bytes) +
           at.in_flight * (sums_[end].activation_bytes - sums_[first].activation_bytes);
  }
  double excess(std::size_t stage, std::size_t first, std::size_t end) const {
    return bytes(stage, first, end) - stages_[stage].memory_bytes;
  }
  /// Infinite where the memory is short. Grows with the layers.
  double seconds(std::size_t stage, std::size_t first, std::size_t end) const {
    if (excess(stage, first, end) > 0) return kInfinity;
    const BalanceStage& at = stages_[stage];
    return (at.fixed_work + sums_[end].work - sums_[first].work) / at.speed + at.fixed_s;
  }

 private:
  std::span<const BalanceStage> stages_;
  std::vector<BalanceLayer> sums_;
};

/// best[stage][end]: the best of the stages up to `stage` when they have the layers before `end`;
/// from[..]: where the last of them begins.
struct Table {
  Table(std::size_t stages, std::size_t layers)
      : width(layers + 1), best(stages * width, kInfinity), from(stages * width, 0) {}
  std::size_t at(std::size_t stage, std::size_t end) const { return stage * width + end; }
  double result() const { return best.back(); }

  std::vector<std::uint32_t> counts() const {
    const std::size_t stages = best.size() / width;
    std::vector<std::uint32_t> found(stages);
    std::size_t end = width - 1;
    for (std::size_t stage = stages; stage-- > 0;) {
      const std::size_t first = from[at(stage, end)];
      found[stage] = static_cast<std::uint32_t>(end - first);
      end = first;
    }
    return found;
  }

  std::size_t width;
  std::vector<double> best;
  std::vector<std::size_t> from;
};

/// Fills a table: `cost(stage, first, end)` must not fall when `first` does, which ends the search
/// for `first` as soon as `give_up(cost, best so far)`; `join(before, cost)` adds a stage.
template <class Cost, class Join, class GiveUp>
Table solve(std::size_t stages, std::size_t layers, const Cost& cost, const Join& join,
            const GiveUp& give_up) {
  Table table(stages, layers);
  for (std::size_t end = 1; end + stages <= layers + 1; ++end) {
    table.best[table.at(0, end)] = cost(0, 0, end);
  }
  for (std::size_t stage = 1; stage < stages; ++stage) {
    for (std::size_t end = stage + 1; end + stages <= layers + stage + 1; ++end) {
      double& best = table.best[table.at(stage, end)];
      for (std::size_t first = end; first-- > stage;) {
        const double here = cost(stage, first, end);
        if (give_up(here, best)) break;
        const double joined = join(table.best[table.at(stage - 1, first)], here);
        if (joined >= best) continue;
        best = joined;
        table.from[table.at(stage, end)] = first;
      }
    }
  }
  return table;
}

Table least_maximum(const Costs& costs, const auto& cost) {
  return solve(
      costs.stages(), costs.layers(), cost,
      [](double before, double here) { return std::max(before, here); },
      [](double here, double best) { return here >= best; });
}

/// The least sum of times when no stage may take longer than `most_s`.
Table least_sum(const Costs& costs, double most_s) {
  const auto cost = [&](std::size_t stage, std::size_t first, std::size_t end) {
    const double seconds = costs.seconds(stage, first, end);
    return seconds > most_s ? kInfinity : seconds;
  };
  return solve(
      costs.stages(), costs.layers(), cost,
      [](double before, double here) { return before + here; },
      [](double here, double) { return std::isinf(here); });
}

Balance measured(const Costs& costs, std::vector<std::uint32_t> counts) {
  Balance result{std::move(counts), 0, 0};
  std::size_t first = 0;
  for (std::size_t stage = 0; stage < result.counts.size(); ++stage) {
    const double seconds = costs.seconds(stage, first, first + result.counts[stage]);
    result.slowest_s = std::max(result.slowest_s, seconds);
    result.sum_s += seconds;
    first += result.counts[stage];
  }
  return result;
}

Error short_memory(const Costs& costs, std::span<const BalanceStage> stages) {
  const auto counts =
      least_maximum(costs, [&](std::size_t stage, std::size_t first, std::size_t end) {
        return costs.excess(stage, first, end);
      }).counts();
  std::size_t first = 0;
  std::size_t worst = 0;
  double most = -kInfinity;
  double needs = 0;
  for (std::size_t stage = 0; stage < counts.size(); ++stage) {
    const double excess = costs.excess(stage, first, first + counts[stage]);
    if (excess > most) {
      most = excess;
      worst = stage;
      needs = costs.bytes(stage, first, first + counts[stage]);
    }
    first += counts[stage];
  }
  return Error(ErrorCode::kOutOfResources,
               "memory is short however the layers are split: in the split that is short least, "
               "stage " +
                   std::to_string(worst) + " with " + counted(counts[worst], "layer") + " needs " +
                   number(needs / kGib) + " GiB of " + number(stages[worst].memory_bytes / kGib) +
                   " GiB, " + number(most / kGib) + " GiB too much");
}

}  // namespace

Result<Balance> balance(std::span<const BalanceLayer> layers, std::span<const BalanceStage> stages,
                        double steady) {
  HOLMES_ASSERT(!stages.empty() && stages.size() <= layers.size(), "each stage needs a layer");
  HOLMES_ASSERT(steady >= 0 && std::isfinite(steady), "a step has micro-batches");
  for (const BalanceStage& stage : stages) HOLMES_ASSERT(stage.speed > 0, "speeds are positive");
  const Costs costs(layers, stages);
  const Table fastest =
      least_maximum(costs, [&](std::size_t stage, std::size_t first, std::size_t end) {
        return costs.seconds(stage, first, end);
      });
  const double least_s = fastest.result();
  if (std::isinf(least_s)) return short_memory(costs, stages);
  const auto step_s = [&](const Balance& split) { return steady * split.slowest_s + split.sum_s; };
  // A slowest stage that takes longer may bring a smaller sum. It cannot be best beyond the bound
  // below, since the sum is at least the slowest stage.
  Balance best = measured(costs, least_sum(costs, least_s).counts());
  double most_s = step_s(best) / (steady + 1);
  while (most_s > least_s) {
    const Table table = least_sum(costs, most_s);
    if (std::isinf(table.result())) break;
    Balance next = measured(costs, table.counts());
    const double slowest_s = next.slowest_s;
    if (step_s(next) < step_s(best)) best = std::move(next);
    // The sums of all that follow are no smaller than this one: that bounds their slowest stage.
    const double useful_s = steady > 0 ? (step_s(best) - table.result()) / steady : slowest_s;
    most_s = std::min(std::nextafter(slowest_s, 0.0), useful_s);
  }
  return best;
}

}  // namespace holmes::partition
