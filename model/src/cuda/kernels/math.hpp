#pragma once

// The few functions of real numbers that kernels use, for host and device, none of them the fast
// and rough kind.

#include <cmath>

#include "cuda/team.hpp"

namespace holmes::model::cuda {

HOLMES_ON_TEAM inline float square_root(float x) {
  return sqrtf(x);
}
HOLMES_ON_TEAM inline float exponential(float x) {
  return expf(x);
}
HOLMES_ON_TEAM inline float logarithm(float x) {
  return logf(x);
}

constexpr float kGeluScale = 0.7978845608F;  // sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715F;

struct Gelu {
  float value;
  float slope;
};

/// In its tanh form.
HOLMES_ON_TEAM inline Gelu gelu(float x) {
  const float t = tanhf(kGeluScale * (x + kGeluCubic * x * x * x));
  const float inner = kGeluScale * (1.0F + 3.0F * kGeluCubic * x * x);
  return {0.5F * x * (1.0F + t), 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * inner};
}

HOLMES_ON_TEAM inline float logistic(float x) {
  return 1.0F / (1.0F + expf(-x));
}

}  // namespace holmes::model::cuda
