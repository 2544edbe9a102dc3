#pragma once

// The order in which one device runs its passes: data, executed by simulator and runtime alike.

#include <vector>

#include "holmes/partition/plan.hpp"

namespace holmes::partition {

enum class Pass : std::uint8_t { kForward, kBackward };

struct ScheduledPass {
  Pass pass = Pass::kForward;
  MicroBatch micro_batch;
  friend bool operator==(const ScheduledPass&, const ScheduledPass&) = default;
};

/// 1F1B (Narayanan et al. 2019): `device` warms up with as many forwards as stages follow it, then
/// alternates. Gradients of one leaf are produced in ascending micro-batch order.
std::vector<ScheduledPass> schedule(const Plan& plan, StageIndex stage, DeviceId device);

/// Most micro-batches whose activations `device` holds at once under schedule().
std::uint32_t in_flight_max(const Plan& plan, StageIndex stage, DeviceId device);

}  // namespace holmes::partition
