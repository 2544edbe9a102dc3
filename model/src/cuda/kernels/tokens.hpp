#pragma once

// What tokens select: rows of the embedding's tables, and the targets of the loss.

#include "cuda/kernels/math.hpp"
#include "cuda/team.hpp"

namespace holmes::model::cuda {

struct EmbedKernel {
  static constexpr int kThreads = 256;
  std::size_t rows;
  std::size_t columns;
  std::size_t positions;  ///< Row r is at position r % positions.
  const std::int32_t* tokens;
  const float* table;
  const float* position_table;  ///< Null: none.
  float* y;

  Teams teams() const { return {.x = groups_of(rows * columns, kElements)}; }
  std::size_t shared_bytes() const { return 0; }
  template <class Team>
  HOLMES_ON_TEAM void run(Team& team) const {
    each_element<kThreads>(team, rows * columns, [&](std::size_t i) {
      const std::size_t row = i / columns;
      const std::size_t c = i % columns;
      const float value = table[static_cast<std::size_t>(tokens[row]) * columns + c];
      y[i] =
          position_table == nullptr ? value : value + position_table[row % positions * columns + c];
    });
  }
};

/// table += rows of dy. The team of a token's first row adds all rows of that token, first to last,
/// so that where a token occurs twice the order is that of positions, and no two teams meet.
struct EmbedBackwardKernel {
  static constexpr int kThreads = 256;
  std::size_t rows;
  std::size_t columns;
  const std::int32_t* tokens;
  const float* dy;
  float* table;

  Teams teams() const { return {.x = static_cast<std::uint32_t>(rows)}; }
  std::size_t shared_bytes() const { return sizeof(int) * kThreads; }

  template <class Team>
  HOLMES_ON_TEAM void run(Team& team) const {
    const std::size_t first = team.x();
    const std::int32_t token = tokens[first];
    const int earlier = team_sum<kThreads>(team, team.template shared<int>(), [&](int thread) {
      int found = 0;
      for (std::size_t row = static_cast<std::size_t>(thread); row < first; row += kThreads)
        found += tokens[row] == token ? 1 : 0;
      return found;
    });
    if (earlier != 0) return;
    float* out = table + static_cast<std::size_t>(token) * columns;
    team.each([&](int thread) {
      for (std::size_t row = first; row < rows; ++row) {
        if (tokens[row] != token) continue;
        for (std::size_t c = static_cast<std::size_t>(thread); c < columns; c += kThreads)
          out[c] += dy[row * columns + c];
      }
    });
  }
};

/// position_table += rows of dy, first sample first.
struct PositionsBackwardKernel {
  static constexpr int kThreads = 256;
  std::size_t samples;
  std::size_t positions;
  std::size_t columns;
  const float* dy;
  float* position_table;

  Teams teams() const { return {.x = groups_of(positions * columns, kElements)}; }
  std::size_t shared_bytes() const { return 0; }
  template <class Team>
  HOLMES_ON_TEAM void run(Team& team) const {
    const std::size_t count = positions * columns;
    each_element<kThreads>(team, count, [&](std::size_t i) {
      for (std::size_t sample = 0; sample < samples; ++sample)
        position_table[i] += dy[sample * count + i];
    });
  }
};

/// Cross-entropy of each row of logits against its target, and the gradient of the logits in their
/// place: a team for each row.
struct CrossEntropyKernel {
  static constexpr int kThreads = 256;
  std::size_t rows;
  std::size_t columns;
  std::size_t stride;
  const std::int32_t* targets;
  float* logits;
  float* losses;         ///< Of each row, in nats; null: not wanted.
  float gradient_scale;  ///< 0: logits stay.

  Teams teams() const { return {.x = static_cast<std::uint32_t>(rows)}; }
  std::size_t shared_bytes() const { return sizeof(float) * kThreads; }

  template <class Team>
  HOLMES_ON_TEAM void run(Team& team) const {
    float* shared = team.template shared<float>();
    const std::size_t row = team.x();
    float* values = logits + row * stride;
    const auto target = static_cast<std::size_t>(targets[row]);
    const float largest = team_fold<kThreads>(
        team, shared,
        [&](int thread) {
          float most = -INFINITY;
          for (std::size_t v = static_cast<std::size_t>(thread); v < columns; v += kThreads)
            most = values[v] > most ? values[v] : most;
          return most;
        },
        [](float a, float b) { return a > b ? a : b; });
    const float sum = team_sum<kThreads>(team, shared, [&](int thread) {
      float part = 0;
      for (std::size_t v = static_cast<std::size_t>(thread); v < columns; v += kThreads)
        part += exponential(values[v] - largest);
      return part;
    });
    team.each([&](int thread) {
      if (thread == 0 && losses != nullptr)
        losses[row] = logarithm(sum) + (largest - values[target]);
    });
    if (gradient_scale == 0.0F) return;
    const float inverse = 1.0F / sum;
    team.each([&](int thread) {
      for (std::size_t v = static_cast<std::size_t>(thread); v < columns; v += kThreads) {
        const float p = exponential(values[v] - largest) * inverse;
        values[v] = (p - (v == target ? 1.0F : 0.0F)) * gradient_scale;
      }
    });
  }
};

}  // namespace holmes::model::cuda
