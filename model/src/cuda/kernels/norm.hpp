#pragma once

// Layer norms and RMS norms (those have no mean and no bias): a team for each row.

#include "cuda/kernels/math.hpp"
#include "cuda/team.hpp"

namespace holmes::model::cuda {

struct NormKernel {
  static constexpr int kThreads = 256;
  std::size_t rows;
  std::size_t columns;
  const float* x;
  const float* weight;
  const float* bias;  ///< Null: an RMS norm, as is a null mean.
  float* mean;
  float* inverse;  ///< 1 / deviation of each row, kept for backward.
  float epsilon;
  float* y;

  Teams teams() const { return {.x = static_cast<std::uint32_t>(rows)}; }
  std::size_t shared_bytes() const { return sizeof(float) * kThreads; }

  template <class Team>
  HOLMES_ON_TEAM void run(Team& team) const {
    float* shared = team.template shared<float>();
    const std::size_t row = team.x();
    const float* in = x + row * columns;
    float* out = y + row * columns;
    const float count = static_cast<float>(columns);
    const float center =
        mean == nullptr ? 0.0F : sum_of(team, shared, [&](std::size_t c) { return in[c]; }) / count;
    const float squares =
        sum_of(team, shared, [&](std::size_t c) { return (in[c] - center) * (in[c] - center); });
    const float scale = 1.0F / square_root(squares / count + epsilon);
    team.each([&](int thread) {
      if (thread == 0) {
        if (mean != nullptr) mean[row] = center;
        inverse[row] = scale;
      }
      for (std::size_t c = static_cast<std::size_t>(thread); c < columns; c += kThreads) {
        const float normal = (in[c] - center) * scale * weight[c];
        out[c] = bias == nullptr ? normal : normal + bias[c];
      }
    });
  }

 private:
  template <class Team, class Value>
  HOLMES_ON_TEAM float sum_of(Team& team, float* shared, const Value& value) const {
    return team_sum<kThreads>(team, shared, [&](int thread) {
      float sum = 0;
      for (std::size_t c = static_cast<std::size_t>(thread); c < columns; c += kThreads)
        sum += value(c);
      return sum;
    });
  }
};

/// The norm's output once more from the kept statistics: the same bits.
struct NormAgainKernel {
  static constexpr int kThreads = 256;
  std::size_t rows;
  std::size_t columns;
  const float* x;
  const float* weight;
  const float* bias;
  const float* mean;
  const float* inverse;
  float* y;

  Teams teams() const { return {.x = groups_of(rows * columns, kElements)}; }
  std::size_t shared_bytes() const { return 0; }

  template <class Team>
  HOLMES_ON_TEAM void run(Team& team) const {
    each_element<kThreads>(team, rows * columns, [&](std::size_t i) {
      const std::size_t row = i / columns;
      const std::size_t c = i % columns;
      const float center = mean == nullptr ? 0.0F : mean[row];
      const float normal = (x[i] - center) * inverse[row] * weight[c];
      y[i] = bias == nullptr ? normal : normal + bias[c];
    });
  }
};

/// The gradient of the norm's input; those of weight and bias are column sums (reduce.hpp).
struct NormBackwardKernel {
  static constexpr int kThreads = 256;
  std::size_t rows;
  std::size_t columns;
  const float* x;
  const float* weight;
  const float* mean;
  const float* inverse;
  const float* dy;
  const float* residual;  ///< Added to dx; null: none. May be dx.
  float* dx;

  Teams teams() const { return {.x = static_cast<std::uint32_t>(rows)}; }
  std::size_t shared_bytes() const { return sizeof(float) * kThreads; }

  template <class Team>
  HOLMES_ON_TEAM void run(Team& team) const {
    float* shared = team.template shared<float>();
    const std::size_t row = team.x();
    const std::size_t base = row * columns;
    const float count = static_cast<float>(columns);
    const float center = mean == nullptr ? 0.0F : mean[row];
    const float scale = inverse[row];
    const auto mean_of = [&](bool times_normal) {
      return team_sum<kThreads>(team, shared,
                                [&](int thread) {
                                  float sum = 0;
                                  for (std::size_t c = static_cast<std::size_t>(thread);
                                       c < columns; c += kThreads) {
                                    const float g = dy[base + c] * weight[c];
                                    sum += times_normal ? g * ((x[base + c] - center) * scale) : g;
                                  }
                                  return sum;
                                }) /
             count;
    };
    const float mean_g = mean == nullptr ? 0.0F : mean_of(false);
    const float mean_gx = mean_of(true);
    team.each([&](int thread) {
      for (std::size_t c = static_cast<std::size_t>(thread); c < columns; c += kThreads) {
        const float normal = (x[base + c] - center) * scale;
        const float g = dy[base + c] * weight[c];
        const float d = scale * (g - mean_g - normal * mean_gx);
        dx[base + c] = residual == nullptr ? d : d + residual[base + c];
      }
    });
  }
};

}  // namespace holmes::model::cuda
