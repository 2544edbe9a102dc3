#pragma once

// The angles of rotary embeddings: one table for all blocks of a model.

#include <cstddef>
#include <vector>

#include "holmes/model/gpt.hpp"

namespace holmes::model {

/// Radians that pair `pair` of `pairs` turns from one position to the next.
double rotary_frequency(const Rope& rope, std::size_t pair, std::size_t pairs);

struct RotaryTable {
  RotaryTable(const Rope& rope, std::size_t head_width, std::size_t position_count);

  /// Whether it is the table of these arguments.
  bool is_for(const Rope& rope, std::size_t head_width, std::size_t position_count) const;

  Rope of;
  std::size_t pairs = 0;  ///< Of a head's channels: half of them.
  std::size_t positions = 0;
  std::vector<float> cosines;  ///< positions x pairs, as are the sines.
  std::vector<float> sines;
};

}  // namespace holmes::model
