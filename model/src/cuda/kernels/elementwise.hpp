#pragma once

// Work that takes each element by itself.

#include "cuda/kernels/math.hpp"
#include "cuda/team.hpp"
#include "kernels/kernels.hpp"

namespace holmes::model::cuda {

/// y = gelu(x).
struct GeluKernel {
  static constexpr int kThreads = 256;
  std::size_t count;
  const float* x;
  float* y;

  Teams teams() const { return {.x = groups_of(count, kElements)}; }
  std::size_t shared_bytes() const { return 0; }
  template <class Team>
  HOLMES_ON_TEAM void run(Team& team) const {
    each_element<kThreads>(team, count, [&](std::size_t i) { y[i] = gelu(x[i]).value; });
  }
};

/// y = gelu(x), gradient *= gelu'(x).
struct GeluBackwardKernel {
  static constexpr int kThreads = 256;
  std::size_t count;
  const float* x;
  float* gradient;
  float* y;

  Teams teams() const { return {.x = groups_of(count, kElements)}; }
  std::size_t shared_bytes() const { return 0; }
  template <class Team>
  HOLMES_ON_TEAM void run(Team& team) const {
    each_element<kThreads>(team, count, [&](std::size_t i) {
      const Gelu g = gelu(x[i]);
      y[i] = g.value;
      gradient[i] *= g.slope;
    });
  }
};

/// Rows of x have `columns` gates, then as many values that go through them.
struct SwigluKernel {
  static constexpr int kThreads = 256;
  std::size_t rows;
  std::size_t columns;
  const float* x;
  float* y;

  Teams teams() const { return {.x = groups_of(rows * columns, kElements)}; }
  std::size_t shared_bytes() const { return 0; }
  template <class Team>
  HOLMES_ON_TEAM void run(Team& team) const {
    each_element<kThreads>(team, rows * columns, [&](std::size_t i) {
      const float* gate = x + i / columns * 2 * columns + i % columns;
      y[i] = gate[0] * logistic(gate[0]) * gate[columns];
    });
  }
};

/// y once more, and the gradient of x.
struct SwigluBackwardKernel {
  static constexpr int kThreads = 256;
  std::size_t rows;
  std::size_t columns;
  const float* x;
  const float* dy;
  float* y;
  float* dx;

  Teams teams() const { return {.x = groups_of(rows * columns, kElements)}; }
  std::size_t shared_bytes() const { return 0; }
  template <class Team>
  HOLMES_ON_TEAM void run(Team& team) const {
    each_element<kThreads>(team, rows * columns, [&](std::size_t i) {
      const std::size_t at = i / columns * 2 * columns + i % columns;
      const float gate = x[at];
      const float rest = x[at + columns];
      const float s = logistic(gate);
      y[i] = gate * s * rest;
      dx[at] = dy[i] * rest * (s + gate * s * (1.0F - s));
      dx[at + columns] = dy[i] * gate * s;
    });
  }
};

/// Turns the first `heads` heads of each row by the row's position, in place: channel i of a head
/// with channel i + half.
struct RotateKernel {
  static constexpr int kThreads = 256;
  std::size_t rows;
  std::size_t heads;
  std::size_t half;
  std::size_t stride;
  std::size_t positions;  ///< Row r is at position r % positions.
  const float* cosines;   ///< positions x half, as are the sines.
  const float* sines;
  bool back;  ///< The other way round, as gradients go.
  float* x;

  Teams teams() const { return {.x = groups_of(rows * heads * half, kElements)}; }
  std::size_t shared_bytes() const { return 0; }
  template <class Team>
  HOLMES_ON_TEAM void run(Team& team) const {
    each_element<kThreads>(team, rows * heads * half, [&](std::size_t i) {
      const std::size_t pair = i % half;
      const std::size_t row = i / half / heads;
      float* low = x + row * stride + i / half % heads * 2 * half + pair;
      const std::size_t angle = row % positions * half + pair;
      const float cosine = cosines[angle];
      const float sine = back ? -sines[angle] : sines[angle];
      const float a = low[0];
      const float b = low[half];
      low[0] = a * cosine - b * sine;
      low[half] = b * cosine + a * sine;
    });
  }
};

/// destination += source.
struct AddKernel {
  static constexpr int kThreads = 256;
  std::size_t count;
  float* destination;
  const float* source;

  Teams teams() const { return {.x = groups_of(count, kElements)}; }
  std::size_t shared_bytes() const { return 0; }
  template <class Team>
  HOLMES_ON_TEAM void run(Team& team) const {
    each_element<kThreads>(team, count, [&](std::size_t i) { destination[i] += source[i]; });
  }
};

/// One update in one pass over memory.
struct AdamWKernel {
  static constexpr int kThreads = 256;
  kernels::AdamWFactors factors;
  std::size_t count;
  float* parameters;
  const float* gradients;
  float* exp_avg;
  float* exp_avg_sq;

  Teams teams() const { return {.x = groups_of(count, kElements)}; }
  std::size_t shared_bytes() const { return 0; }
  template <class Team>
  HOLMES_ON_TEAM void run(Team& team) const {
    const kernels::AdamWFactors f = factors;
    each_element<kThreads>(team, count, [&](std::size_t i) {
      const float gradient = gradients[i] * f.gradient_scale;
      const float m = f.beta1 * exp_avg[i] + f.one_minus_beta1 * gradient;
      const float v = f.beta2 * exp_avg_sq[i] + f.one_minus_beta2 * (gradient * gradient);
      exp_avg[i] = m;
      exp_avg_sq[i] = v;
      const float denominator = square_root(v) * f.inverse_sqrt_c2 + f.epsilon;
      parameters[i] = parameters[i] * f.decay - f.step_size * (m / denominator);
    });
  }
};

}  // namespace holmes::model::cuda
