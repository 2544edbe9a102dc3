#include "gpt/rotary.hpp"

#include <cmath>
#include <numbers>

namespace holmes::model {

double rotary_frequency(const Rope& rope, std::size_t pair, std::size_t pairs) {
  const double frequency =
      std::pow(rope.theta, -static_cast<double>(pair) / static_cast<double>(pairs));
  const double turns = frequency * rope.original_sequence / (2 * std::numbers::pi);
  if (turns > rope.high_factor) return frequency;
  if (turns < rope.low_factor) return frequency / rope.factor;
  const double share = (turns - rope.low_factor) / (rope.high_factor - rope.low_factor);
  return (1 - share) * frequency / rope.factor + share * frequency;
}

RotaryTable::RotaryTable(const Rope& rope, std::size_t head_width, std::size_t position_count)
    : of(rope), pairs(head_width / 2), positions(position_count) {
  cosines.reserve(positions * pairs);
  sines.reserve(positions * pairs);
  std::vector<double> frequencies;
  for (std::size_t i = 0; i < pairs; ++i) frequencies.push_back(rotary_frequency(rope, i, pairs));
  for (std::size_t position = 0; position < positions; ++position)
    for (const double frequency : frequencies) {
      const double angle = static_cast<double>(position) * frequency;
      cosines.push_back(static_cast<float>(std::cos(angle)));
      sines.push_back(static_cast<float>(std::sin(angle)));
    }
}

bool RotaryTable::is_for(const Rope& rope, std::size_t head_width,
                         std::size_t position_count) const {
  return of == rope && pairs == head_width / 2 && positions == position_count;
}

}  // namespace holmes::model
