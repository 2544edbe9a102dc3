#pragma once

// Part of variant.cpp: softmax of attention and of the loss.

#include "kernels/kernels.hpp"
#include "kernels/lanes.hpp"

namespace holmes::model::kernels {
namespace {

HOLMES_INLINE float row_maximum(std::size_t count, const float* x) {
  Lanes largest = all(x[0]);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) largest = larger(largest, load(x + i));
  float lanes[kLanes];
  store(lanes, largest);
  float result = lanes[0];
  for (std::size_t lane = 1; lane < kLanes; ++lane)
    if (lanes[lane] > result) result = lanes[lane];
  for (; i < count; ++i)
    if (x[i] > result) result = x[i];
  return result;
}

/// x becomes exp(x * scale - shift); returns the sum. Lanes beyond the row count as zero.
HOLMES_INLINE float exponentials(std::size_t count, float scale, float shift, float* x) {
  Lanes total = {};
  each_lanes(count, [&](std::size_t i, std::size_t n) {
    const Lanes e = exponential(load(x + i, n) * scale - shift);
    store(x + i, e, n);
    total += n == kLanes ? e : load(x + i, n);
  });
  return sum(total);
}

HOLMES_INLINE void zero(std::size_t count, float* x) {
  __builtin_memset(x, 0, count * sizeof(float));
}

void causal_softmax(const CausalScores& a, float* largest, float* inverse_sum) {
  for (std::size_t row = 0; row < a.rows; ++row) {
    float* scores = a.scores + row * a.stride;
    const std::size_t length = a.first_length + row;
    largest[row] = row_maximum(length, scores) * a.scale;
    inverse_sum[row] = 1.0F / exponentials(length, a.scale, largest[row], scores);
    zero(a.columns - length, scores + length);
  }
}

void causal_softmax_backward(const CausalScores& a, const float* largest, const float* inverse_sum,
                             const float* delta, float* gradient) {
  for (std::size_t row = 0; row < a.rows; ++row) {
    float* scores = a.scores + row * a.stride;
    float* d = gradient + row * a.stride;
    const std::size_t length = a.first_length + row;
    each_lanes(length, [&](std::size_t i, std::size_t n) {
      const Lanes e = exponential(load(scores + i, n) * a.scale - largest[row]);
      const Lanes p = e * inverse_sum[row];
      store(scores + i, p, n);
      store(d + i, p * (load(d + i, n) - delta[row]) * a.scale, n);
    });
    zero(a.columns - length, scores + length);
    zero(a.columns - length, d + length);
  }
}

void scale_rows(std::size_t rows, std::size_t columns, std::size_t stride, const float* factors,
                float* x) {
  for (std::size_t row = 0; row < rows; ++row, x += stride)
    each_lanes(columns, [&](std::size_t i, std::size_t n) {
      store(x + i, load(x + i, n) * factors[row], n);
    });
}

void row_dots(std::size_t rows, std::size_t columns, std::size_t stride, const float* a,
              const float* b, float* dots) {
  for (std::size_t row = 0; row < rows; ++row, a += stride, b += stride) {
    Lanes total = {};
    each_lanes(columns,
               [&](std::size_t i, std::size_t n) { total += load(a + i, n) * load(b + i, n); });
    dots[row] = sum(total);
  }
}

double cross_entropy(const LossRows& a) {
  double total = 0;
  for (std::size_t row = 0; row < a.rows; ++row) {
    float* logits = a.logits + row * a.stride;
    const auto target = static_cast<std::size_t>(a.targets[row]);
    const float target_logit = logits[target];
    const float largest = row_maximum(a.columns, logits);
    const float row_sum = exponentials(a.columns, 1.0F, largest, logits);
    total += __builtin_log(static_cast<double>(row_sum)) + largest - target_logit;
    const float factor = a.gradient_scale / row_sum;
    each_lanes(a.columns, [&](std::size_t i, std::size_t n) {
      store(logits + i, load(logits + i, n) * factor, n);
    });
    logits[target] -= a.gradient_scale;
  }
  return total;
}

}  // namespace
}  // namespace holmes::model::kernels
