#include <algorithm>

#include "holmes/model/gpt.hpp"

namespace holmes::model {

std::string Engine::arithmetic() const {
  return instruction_set();
}

void Engine::clear(std::span<float> values) {
  std::fill(values.begin(), values.end(), 0.0F);
}

void Engine::add(std::span<float> destination, std::span<const float> source) {
  model::add(destination, source);
}

void Engine::sums_of_squares(std::span<const float> values, std::span<const Chunk> chunks,
                             std::span<double> sums) {
  for (std::size_t i = 0; i < chunks.size(); ++i)
    sums[i] = sum_of_squares(values.subspan(chunks[i].offset, chunks[i].count));
}

void Engine::adamw(const AdamW& config, const AdamWStep& step, const AdamWArrays& arrays) {
  model::adamw(config, step.step, step.learning_rate, step.gradient_scale, step.decay,
               arrays.parameters, arrays.gradients, arrays.exp_avg, arrays.exp_avg_sq);
}

}  // namespace holmes::model
