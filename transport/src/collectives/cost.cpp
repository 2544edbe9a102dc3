// Segments, and what each algorithm costs: docs/algorithms.md has the formulas in words.
#include <algorithm>
#include <bit>

#include "holmes/transport/collectives.hpp"

namespace holmes::transport {

namespace {

constexpr std::size_t kElementsInLine = 16;
/// Copying and summing of what doubling has received whole; the others do it while they receive.
constexpr double kSumBytesPerS = 4e9;

/// Steps of a tree or of doubling over so many ranks.
std::size_t levels(std::size_t ranks) {
  return static_cast<std::size_t>(std::bit_width(ranks - 1));
}

struct Cost {
  double steps = 0;   // one after the other
  double bytes = 0;   // through the busier direction of the busiest NIC
  double summed = 0;  // bytes that are copied and summed while nothing is under way
};

Cost ring_or_direct(Collective collective, double steps, double bytes, double ranks) {
  const double share = bytes * (ranks - 1) / ranks;
  switch (collective) {
    case Collective::kAllReduce:
      return {2 * steps, 2 * share};
    case Collective::kReduceScatter:
    case Collective::kAllGather:
      return {steps, share};
    case Collective::kBroadcast:
    case Collective::kBarrier:
      break;
  }
  return {};
}

Cost cost_of(Collective collective, Algorithm algorithm, double bytes, std::size_t ranks) {
  const auto p = static_cast<double>(ranks);
  const auto log = static_cast<double>(levels(ranks));
  if (collective == Collective::kBarrier) return {log, 0};
  if (collective == Collective::kBroadcast) {
    if (algorithm == Algorithm::kRing) return {p - 1, bytes};
    return algorithm == Algorithm::kDirect ? Cost{1, (p - 1) * bytes} : Cost{log, log * bytes};
  }
  if (algorithm != Algorithm::kDoubling)
    return ring_or_direct(collective, algorithm == Algorithm::kRing ? p - 1 : 1, bytes, p);
  const double steps = std::has_single_bit(ranks) ? log : log + 1;
  return {steps, steps * bytes, steps * bytes};
}

bool possible(Collective collective, Algorithm algorithm) {
  return algorithm != Algorithm::kDoubling || collective == Collective::kAllReduce ||
         collective == Collective::kBroadcast;
}

}  // namespace

std::string_view to_string(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kAuto:
      return "auto";
    case Algorithm::kRing:
      return "ring";
    case Algorithm::kDirect:
      return "direct";
    case Algorithm::kDoubling:
      return "doubling";
  }
  return "unknown algorithm";
}

std::string_view to_string(Collective collective) {
  switch (collective) {
    case Collective::kReduceScatter:
      return "reduce-scatter";
    case Collective::kAllGather:
      return "all-gather";
    case Collective::kAllReduce:
      return "all-reduce";
    case Collective::kBroadcast:
      return "broadcast";
    case Collective::kBarrier:
      return "barrier";
  }
  return "unknown collective";
}

Segment segment_of(std::size_t count, std::size_t ranks, std::size_t rank) {
  const auto lines = (count + kElementsInLine - 1) / kElementsInLine;
  const auto at = [&](std::size_t index) {
    return std::min(count, lines * index / ranks * kElementsInLine);
  };
  return {at(rank), at(rank + 1)};
}

Duration predict(Collective collective, Algorithm algorithm, std::size_t bytes, std::size_t ranks,
                 const LinkCost& cost) {
  if (ranks <= 1) return {};
  if (algorithm == Algorithm::kAuto) algorithm = choose(collective, bytes, ranks, cost);
  const auto spent = cost_of(collective, algorithm, static_cast<double>(bytes), ranks);
  return from_seconds(spent.steps * seconds(cost.latency) + spent.bytes * 8 / (cost.gbit_s * 1e9) +
                      spent.summed / kSumBytesPerS);
}

Algorithm choose(Collective collective, std::size_t bytes, std::size_t ranks,
                 const LinkCost& cost) {
  auto best = Algorithm::kRing;
  for (const auto candidate : {Algorithm::kDirect, Algorithm::kDoubling})
    if (possible(collective, candidate) && predict(collective, candidate, bytes, ranks, cost) <
                                               predict(collective, best, bytes, ranks, cost))
      best = candidate;
  return best;
}

}  // namespace holmes::transport
