#pragma once

// Where a stage gets tokens and targets from. Training micro-batches of a step are 0 .. M-1;
// validation micro-batches are numbered on their own.

#include <cstdint>
#include <span>
#include <string>

#include "holmes/base/ids.hpp"
#include "holmes/base/result.hpp"

namespace holmes::actors {

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// Both spans have B*T elements. Called on the devices' compute threads, several at once: it may
  /// wait for a file.
  virtual void fill_training(Step step, MicroBatch micro_batch, std::span<std::int32_t> tokens,
                             std::span<std::int32_t> targets) const = 0;
  virtual void fill_validation(std::uint32_t index, std::span<std::int32_t> tokens,
                               std::span<std::int32_t> targets) const = 0;
  /// That it still gives what it gave at first; to be asked before and after a fill.
  virtual Status unchanged() const { return {}; }
  /// Of all it can give: two sources are alike only if this is equal.
  virtual const std::string& data_hash() const = 0;
};

}  // namespace holmes::actors
