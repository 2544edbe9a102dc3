#include "holmes/partition/schedule.hpp"

#include <algorithm>

#include "holmes/base/assert.hpp"

namespace holmes::partition {
namespace {

/// Forwards before the first backward. With contiguous shares this never deadlocks, whatever the
/// data degrees: give forward k at stage s the time 2 k + s and backward k the time
/// 2 k + 2 p - 1 - s; then every pass comes later than all that it waits for, on its own device
/// and on the others (tests/partition/schedule_test.cpp runs it).
std::size_t warmup(const Plan& plan, StageIndex stage, std::size_t micro_batches) {
  HOLMES_ASSERT(stage.index() < plan.stages.size(), "no such stage");
  return std::min(plan.stages.size() - 1 - stage.index(), micro_batches);
}

}  // namespace

std::vector<ScheduledPass> schedule(const Plan& plan, StageIndex stage, DeviceId device) {
  const auto mine = plan.micro_batches(stage, device);
  const std::size_t ahead = warmup(plan, stage, mine.size());
  std::vector<ScheduledPass> passes;
  passes.reserve(2 * mine.size());
  std::size_t forwards = 0;
  for (; forwards < ahead; ++forwards) passes.push_back({Pass::kForward, mine[forwards]});
  for (const MicroBatch backward : mine) {
    if (forwards < mine.size()) passes.push_back({Pass::kForward, mine[forwards++]});
    passes.push_back({Pass::kBackward, backward});
  }
  return passes;
}

std::uint32_t in_flight_max(const Plan& plan, StageIndex stage, DeviceId device) {
  std::uint32_t held = 0;
  std::uint32_t most = 0;
  for (const ScheduledPass& pass : schedule(plan, stage, device)) {
    if (pass.pass == Pass::kForward) {
      most = std::max(most, ++held);
    } else {
      --held;
    }
  }
  return most;
}

}  // namespace holmes::partition
