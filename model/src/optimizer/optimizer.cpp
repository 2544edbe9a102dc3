#include "holmes/model/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "holmes/base/assert.hpp"
#include "optimizer/factors.hpp"

namespace holmes::model {

std::vector<Chunk> chunks_of(const std::vector<ParameterSpec>& parameters) {
  std::vector<Chunk> chunks;
  for (const auto& tensor : parameters)
    for (std::size_t done = 0; done < tensor.count; done += kChunkElements)
      chunks.push_back({.offset = tensor.offset + done,
                        .count = std::min(kChunkElements, tensor.count - done),
                        .decay = tensor.decay,
                        .tied_copy = tensor.tied_copy});
  return chunks;
}

void add(std::span<float> destination, std::span<const float> source) {
  HOLMES_ASSERT(destination.size() == source.size(), "spans of different sizes are added");
  kernels::best().add(source.size(), destination.data(), source.data());
}

double sum_of_squares(std::span<const float> values) {
  return kernels::best().sum_of_squares(values.size(), values.data());
}

float clip_factor(double norm, double max_norm) {
  if (max_norm <= 0) return 1;
  constexpr double kAgainstZero = 1e-6;
  const double factor = max_norm / (norm + kAgainstZero);
  return factor < 1 ? static_cast<float>(factor) : 1.0F;
}

kernels::AdamWFactors adamw_factors(const AdamW& config, const AdamWStep& step) {
  const double t = static_cast<double>(step.step) + 1;
  const double c1 = 1 - std::pow(static_cast<double>(config.beta1), t);
  const double c2 = 1 - std::pow(static_cast<double>(config.beta2), t);
  return {
      .gradient_scale = step.gradient_scale,
      .beta1 = config.beta1,
      .one_minus_beta1 = 1 - config.beta1,
      .beta2 = config.beta2,
      .one_minus_beta2 = 1 - config.beta2,
      .decay = step.decay ? 1 - step.learning_rate * config.weight_decay : 1,
      .step_size = static_cast<float>(static_cast<double>(step.learning_rate) / c1),
      .inverse_sqrt_c2 = static_cast<float>(1 / std::sqrt(c2)),
      .epsilon = config.epsilon,
  };
}

void adamw(const AdamW& config, std::uint64_t step, float learning_rate, float gradient_scale,
           bool decay, std::span<float> parameters, std::span<const float> gradients,
           std::span<float> exp_avg, std::span<float> exp_avg_sq) {
  HOLMES_ASSERT(gradients.size() == parameters.size() && exp_avg.size() == parameters.size() &&
                    exp_avg_sq.size() == parameters.size(),
                "an update's spans have different sizes");
  kernels::best().adamw(adamw_factors(config, {step, learning_rate, gradient_scale, decay}),
                        parameters.size(), parameters.data(), gradients.data(), exp_avg.data(),
                        exp_avg_sq.data());
}

float learning_rate(const LearningRate& schedule, std::uint64_t step) {
  if (step < schedule.warmup_steps)
    return schedule.peak * static_cast<float>(step + 1) / static_cast<float>(schedule.warmup_steps);
  if (step >= schedule.decay_steps) return schedule.floor;
  const double progress = static_cast<double>(step - schedule.warmup_steps) /
                          static_cast<double>(schedule.decay_steps - schedule.warmup_steps);
  const double share = 0.5 * (1 + std::cos(std::numbers::pi * progress));
  return static_cast<float>(schedule.floor + share * (schedule.peak - schedule.floor));
}

}  // namespace holmes::model
