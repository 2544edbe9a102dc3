#pragma once

// Part of variant.cpp: layer norm, bias, residual and GELU, row by row.

#include "kernels/kernels.hpp"
#include "kernels/lanes.hpp"

namespace holmes::model::kernels {
namespace {

void layer_norm(std::size_t rows, std::size_t columns, const float* x, const float* weight,
                const float* bias, RowStatistics statistics, float epsilon, float* y) {
  const float inverse_count = 1.0F / static_cast<float>(columns);
  for (std::size_t row = 0; row < rows; ++row, x += columns, y += columns) {
    Lanes total = {};
    each_lanes(columns, [&](std::size_t i, std::size_t n) { total += load(x + i, n); });
    const float mean = sum(total) * inverse_count;
    Lanes squares = {};
    each_lanes(columns, [&](std::size_t i, std::size_t n) {
      // Lanes beyond the row must stay zero.
      const Lanes difference = load(x + i, n) - mean;
      Lanes square = difference * difference;
      if (n < kLanes) {
        float part[kLanes];
        store(part, square);
        square = load(part, n);
      }
      squares += square;
    });
    const float variance = sum(squares) * inverse_count;
    const float inverse_deviation = 1.0F / __builtin_sqrtf(variance + epsilon);
    statistics.mean[row] = mean;
    statistics.inverse_deviation[row] = inverse_deviation;
    each_lanes(columns, [&](std::size_t i, std::size_t n) {
      const Lanes normal = (load(x + i, n) - mean) * inverse_deviation;
      store(y + i, normal * load(weight + i, n) + load(bias + i, n), n);
    });
  }
}

void layer_norm_again(std::size_t rows, std::size_t columns, const float* x, const float* weight,
                      const float* bias, ConstRowStatistics statistics, float* y) {
  for (std::size_t row = 0; row < rows; ++row, x += columns, y += columns) {
    const float mean = statistics.mean[row];
    const float inverse_deviation = statistics.inverse_deviation[row];
    each_lanes(columns, [&](std::size_t i, std::size_t n) {
      const Lanes normal = (load(x + i, n) - mean) * inverse_deviation;
      store(y + i, normal * load(weight + i, n) + load(bias + i, n), n);
    });
  }
}

void layer_norm_backward(const NormBackward& a) {
  const float inverse_count = 1.0F / static_cast<float>(a.columns);
  for (std::size_t row = 0; row < a.rows; ++row) {
    const float* x = a.x + row * a.columns;
    const float* dy = a.dy + row * a.columns;
    const float mean = a.statistics.mean[row];
    const float inverse_deviation = a.statistics.inverse_deviation[row];
    Lanes sum_g = {};
    Lanes sum_gx = {};
    each_lanes(a.columns, [&](std::size_t i, std::size_t n) {
      const Lanes normal = (load(x + i, n) - mean) * inverse_deviation;
      const Lanes gradient = load(dy + i, n);
      const Lanes g = gradient * load(a.weight + i, n);
      sum_g += g;
      sum_gx += g * normal;
      store(a.dweight + i, load(a.dweight + i, n) + gradient * normal, n);
      store(a.dbias + i, load(a.dbias + i, n) + gradient, n);
    });
    const float mean_g = sum(sum_g) * inverse_count;
    const float mean_gx = sum(sum_gx) * inverse_count;
    const float* residual = a.residual == nullptr ? nullptr : a.residual + row * a.columns;
    float* dx = a.dx + row * a.columns;
    each_lanes(a.columns, [&](std::size_t i, std::size_t n) {
      const Lanes normal = (load(x + i, n) - mean) * inverse_deviation;
      const Lanes g = load(dy + i, n) * load(a.weight + i, n);
      Lanes value = (g - mean_g - normal * mean_gx) * inverse_deviation;
      if (residual != nullptr) value += load(residual + i, n);
      store(dx + i, value, n);
    });
  }
}

void add_bias(std::size_t rows, std::size_t columns, const float* bias, float* y) {
  for (std::size_t row = 0; row < rows; ++row, y += columns)
    each_lanes(columns, [&](std::size_t i, std::size_t n) {
      store(y + i, load(y + i, n) + load(bias + i, n), n);
    });
}

void add_bias_and_residual(std::size_t rows, std::size_t columns, const float* bias,
                           const float* residual, float* y) {
  for (std::size_t row = 0; row < rows; ++row, y += columns, residual += columns)
    each_lanes(columns, [&](std::size_t i, std::size_t n) {
      store(y + i, (load(y + i, n) + load(bias + i, n)) + load(residual + i, n), n);
    });
}

void add_column_sums(std::size_t rows, std::size_t columns, const float* y, float* sums) {
  for (std::size_t row = 0; row < rows; ++row, y += columns)
    each_lanes(columns, [&](std::size_t i, std::size_t n) {
      store(sums + i, load(sums + i, n) + load(y + i, n), n);
    });
}

// GELU in its tanh form is x * s(z) with the logistic function s and z as below.
constexpr float kGeluScale = 1.595769121605730711F;  // 2 sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715F;

void bias_gelu(std::size_t rows, std::size_t columns, const float* bias, float* x, float* y) {
  for (std::size_t row = 0; row < rows; ++row, x += columns, y += columns)
    each_lanes(columns, [&](std::size_t i, std::size_t n) {
      const Lanes v = load(x + i, n) + load(bias + i, n);
      const Lanes z = (v + (v * v) * v * kGeluCubic) * kGeluScale;
      store(x + i, v, n);
      store(y + i, v / (exponential(-z) + 1.0F), n);
    });
}

void gelu_backward(std::size_t rows, std::size_t columns, const float* x, float* gradient, float* y,
                   float* dbias) {
  for (std::size_t row = 0; row < rows; ++row, x += columns, gradient += columns, y += columns)
    each_lanes(columns, [&](std::size_t i, std::size_t n) {
      const Lanes v = load(x + i, n);
      const Lanes square = v * v;
      const Lanes z = (v + square * v * kGeluCubic) * kGeluScale;
      const Lanes e = exponential(-z);
      const Lanes s = 1.0F / (e + 1.0F);
      const Lanes slope =
          s + v * s * (e * s) * (kGeluScale + square * (3 * kGeluCubic * kGeluScale));
      const Lanes dx = load(gradient + i, n) * slope;
      store(y + i, v / (e + 1.0F), n);
      store(gradient + i, dx, n);
      store(dbias + i, load(dbias + i, n) + dx, n);
    });
}

}  // namespace
}  // namespace holmes::model::kernels
