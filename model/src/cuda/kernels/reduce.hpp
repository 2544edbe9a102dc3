#pragma once

// Sums over rows, in two steps and in an order that the sizes alone decide: first over runs of
// kRunRows rows, then over the runs, first to last.

#include "cuda/team.hpp"

namespace holmes::model::cuda {

constexpr std::size_t kRunRows = 64;

/// Sums of each column over each run of rows: of dy, and of dy times the normalised x.
struct ColumnRunsKernel {
  static constexpr int kThreads = 128;
  std::size_t rows;
  std::size_t columns;
  const float* dy;
  const float* x;  ///< Null: only dy is summed.
  const float* mean;
  const float* inverse;
  float* runs;         ///< Of dy: runs x columns; null: not wanted.
  float* normal_runs;  ///< Of dy times normal.

  Teams teams() const {
    return {.x = groups_of(columns, kThreads), .y = groups_of(rows, kRunRows)};
  }
  std::size_t shared_bytes() const { return 0; }

  template <class Team>
  HOLMES_ON_TEAM void run(Team& team) const {
    const std::size_t begin = team.y() * kRunRows;
    const std::size_t end = begin + kRunRows < rows ? begin + kRunRows : rows;
    team.each([&](int thread) {
      const std::size_t c = team.x() * kThreads + static_cast<std::size_t>(thread);
      if (c >= columns) return;
      float sum = 0;
      float normal_sum = 0;
      for (std::size_t row = begin; row < end; ++row) {
        const float g = dy[row * columns + c];
        sum += g;
        if (x == nullptr) continue;
        const float center = mean == nullptr ? 0.0F : mean[row];
        normal_sum += g * ((x[row * columns + c] - center) * inverse[row]);
      }
      if (runs != nullptr) runs[team.y() * columns + c] = sum;
      if (x != nullptr) normal_runs[team.y() * columns + c] = normal_sum;
    });
  }
};

/// sums += the sum of the runs.
struct AddRunsKernel {
  static constexpr int kThreads = 128;
  std::size_t run_count;
  std::size_t columns;
  const float* runs;
  float* sums;

  Teams teams() const { return {.x = groups_of(columns, kThreads)}; }
  std::size_t shared_bytes() const { return 0; }

  template <class Team>
  HOLMES_ON_TEAM void run(Team& team) const {
    team.each([&](int thread) {
      const std::size_t c = team.x() * kThreads + static_cast<std::size_t>(thread);
      if (c >= columns) return;
      float sum = 0;
      for (std::size_t i = 0; i < run_count; ++i) sum += runs[i * columns + c];
      sums[c] += sum;
    });
  }
};

/// The sum of each chunk's values, or of their squares, in double.
struct ChunkSumsKernel {
  static constexpr int kThreads = 256;
  struct Range {
    std::size_t offset;
    std::size_t count;
  };
  std::size_t chunk_count;
  const Range* chunks;
  const float* values;
  bool squares;
  double* sums;

  Teams teams() const { return {.x = static_cast<std::uint32_t>(chunk_count)}; }
  std::size_t shared_bytes() const { return sizeof(double) * kThreads; }

  template <class Team>
  HOLMES_ON_TEAM void run(Team& team) const {
    const Range chunk = chunks[team.x()];
    const double total = team_sum<kThreads>(team, team.template shared<double>(), [&](int thread) {
      double sum = 0;
      for (std::size_t i = static_cast<std::size_t>(thread); i < chunk.count; i += kThreads) {
        const double value = values[chunk.offset + i];
        sum += squares ? value * value : value;
      }
      return sum;
    });
    team.each([&](int thread) {
      if (thread == 0) sums[team.x()] = total;
    });
  }
};

}  // namespace holmes::model::cuda
