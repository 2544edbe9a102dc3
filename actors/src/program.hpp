#pragma once

// What one device does in one step: validation passes that are due on the values the step starts
// from, then the training passes of its schedule. A pure function, so that senders and receivers
// agree on what will travel without asking.

#include <cstdint>
#include <vector>

#include "holmes/partition/plan.hpp"
#include "holmes/partition/schedule.hpp"

namespace holmes::actors {

/// How long a job trains and when it validates.
struct TrainingSpan {
  std::uint64_t steps = 0;           ///< Updates in all; "step" `steps` only validates.
  std::uint64_t validate_every = 0;  ///< 0: only after the last update.
  std::uint32_t validation_batches = 0;
  friend bool operator==(const TrainingSpan&, const TrainingSpan&) = default;
};

enum class PassKind : std::uint8_t { kForward, kBackward, kValidate };

struct ProgramPass {
  PassKind kind = PassKind::kForward;
  /// Training: 0 .. M-1. Validation: M + index, so that no two payloads of a step share a tag.
  MicroBatch micro_batch;
  friend bool operator==(const ProgramPass&, const ProgramPass&) = default;
};

/// Whether the values that `step` starts from are to be validated.
bool validation_due(const TrainingSpan& span, Step step);

/// Device that runs validation micro-batch `index` at `stage`.
DeviceId validation_owner(const partition::Plan& plan, StageIndex stage, std::uint32_t index);

/// Device that computes `micro_batch` (training or validation) at `stage`.
DeviceId pass_owner(const partition::Plan& plan, StageIndex stage, MicroBatch micro_batch);

std::vector<ProgramPass> step_program(const partition::Plan& plan, const TrainingSpan& span,
                                      StageIndex stage, DeviceId device, Step step);

}  // namespace holmes::actors
