#pragma once

// The order in which one device runs its passes: data, executed by simulator and runtime alike.
//
// Every schedule adds the weight gradients of one leaf in ascending micro-batch order, so that all
// of them give the same bits.
//   gpipe        Huang et al. 2019: all forwards, then all backwards.
//   1f1b         Narayanan et al. 2019 (PipeDream-Flush): as many forwards ahead as stages follow.
//   interleaved  Narayanan et al. 2021: each stage has several chunks of blocks, and a micro-batch
//                goes through the pipeline once for each; smaller bubbles, more transfers.
//   zero-bubble  Qi et al. 2023 (ZB-H1): backward is split into the gradient of the input, which
//                the stage before waits for, and that of the weights, which fills what were
//                bubbles.
//   network-aware  An order for each replica that the plan itself carries: generated for the delays
//                and speeds of this cluster (order.hpp).

#include <string>
#include <vector>

#include "holmes/partition/plan.hpp"

namespace holmes::partition {

enum class Pass : std::uint8_t {
  kForward,
  kBackward,        ///< Gradients of input and weights.
  kBackwardInput,   ///< Of the input only.
  kBackwardWeight,  ///< Of the weights only, on the same device, later.
};
/// In Share::order: 'F', 'B', 'I', 'W'.
char letter_of(Pass pass);

struct ScheduledPass {
  Pass pass = Pass::kForward;
  MicroBatch micro_batch;
  std::uint32_t chunk = 0;  ///< interleaved: which of the stage's runs of blocks.
  friend bool operator==(const ScheduledPass&, const ScheduledPass&) = default;
};

/// The passes of `device` at `stage` in one step; empty when it is not of that stage. The plan must
/// satisfy check_schedule().
std::vector<ScheduledPass> schedule(const Plan& plan, StageIndex stage, DeviceId device);

/// schedule() as letters.
std::string order_of(const Plan& plan, StageIndex stage, DeviceId device);

/// What the plan's schedule asks of the plan: interleaved wants equal shares at all stages, a
/// multiple of the stages of micro-batches for each replica, and a block for each chunk;
/// network-aware an order for each replica with every pass once, which together come to their end.
Status check_schedule(const Plan& plan);

/// Whether training can run it; the simulator runs all. A network-aware plan must have whole
/// backward passes and no chunks.
constexpr bool executed_by_runtime(ScheduleKind kind) {
  return kind == ScheduleKind::k1F1B || kind == ScheduleKind::kGPipe ||
         kind == ScheduleKind::kNetworkAware;
}
bool executed_by_runtime(const Plan& plan);

/// Most micro-batches (with interleaved: chunks of micro-batches) whose activations `device` holds
/// at once under schedule().
std::uint32_t in_flight_max(const Plan& plan, StageIndex stage, DeviceId device);
std::uint32_t in_flight_max(const std::vector<ScheduledPass>& passes);

}  // namespace holmes::partition
