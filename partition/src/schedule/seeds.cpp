#include "schedule/seeds.hpp"

#include <algorithm>
#include <cmath>

namespace holmes::partition {
namespace {

std::string word(std::uint32_t units, std::uint32_t depth, bool split, std::uint32_t late) {
  std::string result(std::min(depth, units), 'F');
  result.reserve(std::size_t{3} * units);
  auto forwards = static_cast<std::uint32_t>(result.size());
  std::uint32_t weights = 0;
  for (std::uint32_t i = 0; i < units; ++i) {
    result += split ? 'I' : 'B';
    if (split && weights + late <= i) {
      result += 'W';
      ++weights;
    }
    if (forwards < units) {
      result += 'F';
      ++forwards;
    }
  }
  if (split) result.append(units - weights, 'W');
  return result;
}

/// Forwards of 1F1B and of interleaved 1F1B before the first backward, with that of the steady
/// state.
std::uint32_t usual_depth(const Pipeline& pipeline, std::uint32_t stage) {
  const std::uint32_t behind = pipeline.stages - 1 - stage;
  if (pipeline.chunks == 1) return behind + 1;
  return 2 * behind + (pipeline.chunks - 1) * pipeline.stages + 1;
}

double seconds(const Pipeline::Way& way) {
  double longest_s = 0;
  for (const auto& part : way.parts) longest_s = std::max(longest_s, part.busy_s);
  return longest_s + way.latency_s;
}

}  // namespace

Orders orders_of_depths(const Pipeline& pipeline, const std::vector<std::uint32_t>& depths,
                        bool split, std::uint32_t late) {
  Orders orders;
  for (std::uint32_t i = 0; i < pipeline.stations.size(); ++i) {
    const Pipeline::Station& station = pipeline.stations[i];
    std::uint32_t later = late == Seed::kByStage ? station.stage : late;
    const std::uint32_t depth = std::clamp(depths[i], 1U, station.held_max);
    later = std::min(later, station.held_max - depth);
    orders.push_back(word(pipeline.units(i), depth, split, later));
  }
  return orders;
}

Orders seed_orders(const Pipeline& pipeline, const Seed& seed) {
  std::vector<std::uint32_t> depths;
  for (const Pipeline::Station& station : pipeline.stations) {
    depths.push_back(usual_depth(pipeline, station.stage) + seed.extra);
  }
  return orders_of_depths(pipeline, depths, seed.split, seed.late);
}

std::vector<std::uint32_t> round_trip_depths(const Pipeline& pipeline) {
  std::vector<double> work_s(pipeline.stages, 0);
  std::vector<double> trip_s(pipeline.stages, 0);
  double period_s = 0;
  for (const Pipeline::Station& station : pipeline.stations) {
    double here_s = 0;
    for (const PassTimes& times : station.chunks) here_s += times.forward_s + times.backward_s;
    work_s[station.stage] = std::max(work_s[station.stage], here_s);
    period_s = std::max(period_s, here_s);
  }
  for (std::uint32_t stage = pipeline.stages; stage-- > 0;) {
    if (stage + 1 == pipeline.stages) continue;
    const std::size_t from = std::size_t{stage} * pipeline.micro_batches;
    trip_s[stage] = trip_s[stage + 1] + work_s[stage + 1] +
                    seconds(pipeline.ways[pipeline.forth[from]]) +
                    seconds(pipeline.ways[pipeline.back[from + pipeline.micro_batches]]);
  }
  std::vector<std::uint32_t> depths;
  for (const Pipeline::Station& station : pipeline.stations) {
    const double ahead = period_s > 0 ? trip_s[station.stage] / period_s : 0;
    depths.push_back(static_cast<std::uint32_t>(
                         std::min(std::ceil(ahead - 1e-9), 1.0 * pipeline.micro_batches)) *
                         pipeline.chunks +
                     1);
  }
  return depths;
}

std::vector<Orders> all_seeds(const Pipeline& pipeline, bool split, std::size_t most) {
  std::vector<Orders> seeds;
  const auto add = [&](Orders orders) {
    if (seeds.size() < most && std::find(seeds.begin(), seeds.end(), orders) == seeds.end()) {
      seeds.push_back(std::move(orders));
    }
  };
  std::uint32_t extra_max = 0;
  for (const auto& station : pipeline.stations) {
    const std::uint32_t usual = usual_depth(pipeline, station.stage);
    extra_max = std::max(extra_max, station.held_max - std::min(station.held_max, usual));
  }
  const auto trip = round_trip_depths(pipeline);
  add(seed_orders(pipeline, {}));
  add(seed_orders(pipeline, {extra_max, false, 0}));
  if (split) add(seed_orders(pipeline, {0, true, Seed::kByStage}));
  add(orders_of_depths(pipeline, trip, false, 0));
  for (std::uint32_t extra = 1; extra <= extra_max && seeds.size() < most; ++extra) {
    add(seed_orders(pipeline, {extra, false, 0}));
  }
  const std::uint32_t parts = split ? extra_max + 1 : 0;
  for (std::uint32_t extra = 0; extra < parts && seeds.size() < most; ++extra) {
    add(seed_orders(pipeline, {extra, true, Seed::kByStage}));
    add(seed_orders(pipeline, {extra, true, 0}));
    add(seed_orders(pipeline, {extra, true, pipeline.micro_batches}));
  }
  return seeds;
}

}  // namespace holmes::partition
