#pragma once

// Part of variant.cpp: element-wise work of the optimizer and of gradient sums.

#include "kernels/kernels.hpp"
#include "kernels/lanes.hpp"

namespace holmes::model::kernels {
namespace {

void add(std::size_t count, float* __restrict destination, const float* __restrict source) {
  for (std::size_t i = 0; i < count; ++i) destination[i] += source[i];
}

double sum_of_squares(std::size_t count, const float* values) {
  typedef double Wide __attribute__((vector_size(8 * kLanes)));
  Wide totals[2] = {};
  std::size_t turn = 0;
  each_lanes(count, [&](std::size_t i, std::size_t n) {
    const Wide wide = __builtin_convertvector(load(values + i, n), Wide);
    totals[turn] += wide * wide;
    turn ^= 1;
  });
  const Wide total = totals[0] + totals[1];
  double lanes[kLanes];
  __builtin_memcpy(lanes, &total, sizeof total);
  for (std::size_t width = kLanes / 2; width > 0; width /= 2)
    for (std::size_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  return lanes[0];
}

void adamw(const AdamWFactors& factors, std::size_t count, float* __restrict parameters,
           const float* __restrict gradients, float* __restrict exp_avg,
           float* __restrict exp_avg_sq) {
  const AdamWFactors f = factors;
  for (std::size_t i = 0; i < count; ++i) {
    const float gradient = gradients[i] * f.gradient_scale;
    const float m = f.beta1 * exp_avg[i] + f.one_minus_beta1 * gradient;
    const float v = f.beta2 * exp_avg_sq[i] + f.one_minus_beta2 * (gradient * gradient);
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
    const float denominator = __builtin_sqrtf(v) * f.inverse_sqrt_c2 + f.epsilon;
    parameters[i] = parameters[i] * f.decay - f.step_size * (m / denominator);
  }
}

}  // namespace
}  // namespace holmes::model::kernels
