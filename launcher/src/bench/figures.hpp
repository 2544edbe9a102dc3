#pragma once

// What the ranks of a benchmark measure, small enough to travel through a pipe.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace holmes::launcher {

struct Figures {
  double best_s = 0;    ///< Shortest repetition.
  double median_s = 0;  ///< Of all repetitions.
  double p99_s = 0;
  std::uint64_t repetitions = 0;
  double cpu_s = 0;  ///< Of this process, for one repetition.
};

/// `times` of at least one repetition.
inline Figures figures_of(std::vector<double> times, double cpu_s) {
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
  };
  return {times.front(), at(0.5), at(0.99), times.size(),
          cpu_s / static_cast<double>(times.size())};
}

}  // namespace holmes::launcher
