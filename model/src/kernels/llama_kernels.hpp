#pragma once

// Part of variant.cpp: what Llama's blocks have and GPT-2's have not: RMS norms, rotary embeddings
// and SwiGLU, row by row.

#include "kernels/kernels.hpp"
#include "kernels/lanes.hpp"

namespace holmes::model::kernels {
namespace {

void rms_norm_again(std::size_t rows, std::size_t columns, const float* x, const float* weight,
                    const float* inverse_deviation, float* y) {
  for (std::size_t row = 0; row < rows; ++row, x += columns, y += columns)
    each_lanes(columns, [&](std::size_t i, std::size_t n) {
      store(y + i, load(x + i, n) * inverse_deviation[row] * load(weight + i, n), n);
    });
}

void rms_norm(std::size_t rows, std::size_t columns, const float* x, const float* weight,
              float* inverse_deviation, float epsilon, float* y) {
  const float inverse_count = 1.0F / static_cast<float>(columns);
  for (std::size_t row = 0; row < rows; ++row) {
    Lanes squares = {};
    each_lanes(columns, [&](std::size_t i, std::size_t n) {
      const Lanes value = load(x + row * columns + i, n);
      squares += value * value;
    });
    const float mean_square = sum(squares) * inverse_count;
    inverse_deviation[row] = 1.0F / __builtin_sqrtf(mean_square + epsilon);
  }
  rms_norm_again(rows, columns, x, weight, inverse_deviation, y);
}

void rms_norm_backward(const NormBackward& a) {
  const float inverse_count = 1.0F / static_cast<float>(a.columns);
  for (std::size_t row = 0; row < a.rows; ++row) {
    const float* x = a.x + row * a.columns;
    const float* dy = a.dy + row * a.columns;
    const float inverse_deviation = a.statistics.inverse_deviation[row];
    Lanes sum_gx = {};
    each_lanes(a.columns, [&](std::size_t i, std::size_t n) {
      const Lanes normal = load(x + i, n) * inverse_deviation;
      const Lanes gradient = load(dy + i, n);
      sum_gx += gradient * load(a.weight + i, n) * normal;
      store(a.dweight + i, load(a.dweight + i, n) + gradient * normal, n);
    });
    const float mean_gx = sum(sum_gx) * inverse_count;
    const float* residual = a.residual == nullptr ? nullptr : a.residual + row * a.columns;
    float* dx = a.dx + row * a.columns;
    each_lanes(a.columns, [&](std::size_t i, std::size_t n) {
      const Lanes normal = load(x + i, n) * inverse_deviation;
      const Lanes g = load(dy + i, n) * load(a.weight + i, n);
      Lanes value = (g - normal * mean_gx) * inverse_deviation;
      if (residual != nullptr) value += load(residual + i, n);
      store(dx + i, value, n);
    });
  }
}

void rotate(const Rotation& a, float* x) {
  const float direction = a.back ? -1.0F : 1.0F;
  for (std::size_t row = 0; row < a.rows; ++row, x += a.stride) {
    const float* cosines = a.cosines + row % a.positions * a.half;
    const float* sines = a.sines + row % a.positions * a.half;
    for (std::size_t head = 0; head < a.heads; ++head) {
      float* low = x + head * 2 * a.half;
      float* high = low + a.half;
      each_lanes(a.half, [&](std::size_t i, std::size_t n) {
        const Lanes c = load(cosines + i, n);
        const Lanes s = load(sines + i, n) * direction;
        const Lanes p = load(low + i, n);
        const Lanes q = load(high + i, n);
        store(low + i, p * c - q * s, n);
        store(high + i, q * c + p * s, n);
      });
    }
  }
}

void swiglu(std::size_t rows, std::size_t columns, const float* x, float* y) {
  for (std::size_t row = 0; row < rows; ++row, x += 2 * columns, y += columns)
    each_lanes(columns, [&](std::size_t i, std::size_t n) {
      const Lanes gate = load(x + i, n);
      store(y + i, gate / (exponential(-gate) + 1.0F) * load(x + columns + i, n), n);
    });
}

void swiglu_backward(std::size_t rows, std::size_t columns, const float* x, const float* dy,
                     float* y, float* dx) {
  for (std::size_t row = 0; row < rows; ++row) {
    each_lanes(columns, [&](std::size_t i, std::size_t n) {
      const Lanes gate = load(x + i, n);
      const Lanes rest = load(x + columns + i, n);
      const Lanes gradient = load(dy + i, n);
      const Lanes e = exponential(-gate);
      const Lanes open = gate / (e + 1.0F);
      const Lanes s = 1.0F / (e + 1.0F);
      store(y + i, open * rest, n);
      store(dx + i, gradient * rest * (s + open * (e * s)), n);
      store(dx + columns + i, gradient * open, n);
    });
    x += 2 * columns;
    dx += 2 * columns;
    y += columns;
    dy += columns;
  }
}

}  // namespace
}  // namespace holmes::model::kernels
