#include "holmes/partition/schedule.hpp"

#include <algorithm>

#include "holmes/base/assert.hpp"
#include "schedule/pipeline_of.hpp"

namespace holmes::partition {
namespace {

using Passes = std::vector<ScheduledPass>;

Error invalid(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

std::size_t stages_behind(const Plan& plan, StageIndex stage) {
  HOLMES_ASSERT(stage.index() < plan.stages.size(), "no such stage");
  return plan.stages.size() - 1 - stage.index();
}

/// Forwards before the first backward are as many as stages follow. With contiguous shares this
/// never deadlocks, whatever the data degrees: give forward k at stage s the time 2 k + s and
/// backward k the time 2 k + 2 p - 1 - s; then every pass comes later than all that it waits for,
/// on its own device and on the others (tests/partition/schedule_test.cpp runs it).
Passes one_forward_one_backward(const std::vector<MicroBatch>& mine, std::size_t behind) {
  Passes passes;
  passes.reserve(2 * mine.size());
  std::size_t forwards = 0;
  for (; forwards < std::min(behind, mine.size()); ++forwards) {
    passes.push_back({Pass::kForward, mine[forwards]});
  }
  for (const MicroBatch backward : mine) {
    if (forwards < mine.size()) passes.push_back({Pass::kForward, mine[forwards++]});
    passes.push_back({Pass::kBackward, backward});
  }
  return passes;
}

Passes all_forward_all_backward(const std::vector<MicroBatch>& mine) {
  Passes passes;
  passes.reserve(2 * mine.size());
  for (const MicroBatch k : mine) passes.push_back({Pass::kForward, k});
  for (const MicroBatch k : mine) passes.push_back({Pass::kBackward, k});
  return passes;
}

/// Forwards and backwards of the input as in 1F1B, so that it deadlocks as little. Stage s runs the
/// backward of weights s micro-batches later: then every stage holds as many activations as the
/// first one does, and the stages behind have weight gradients left for their last bubble.
Passes zero_bubble(const std::vector<MicroBatch>& mine, std::size_t behind, std::size_t late) {
  Passes passes;
  passes.reserve(3 * mine.size());
  std::size_t weights = 0;
  std::size_t inputs = 0;
  for (const ScheduledPass& pass : one_forward_one_backward(mine, behind)) {
    if (pass.pass == Pass::kForward) {
      passes.push_back(pass);
      continue;
    }
    passes.push_back({Pass::kBackwardInput, pass.micro_batch});
    ++inputs;
    if (weights + late < inputs) passes.push_back({Pass::kBackwardWeight, mine[weights++]});
  }
  while (weights < mine.size()) passes.push_back({Pass::kBackwardWeight, mine[weights++]});
  return passes;
}

/// Unit i of a replica's work: rounds of p micro-batches, each round once through every chunk.
ScheduledPass interleaved_unit(const Plan& plan, const std::vector<MicroBatch>& mine, Pass pass,
                               std::size_t unit) {
  const std::size_t stages = plan.stages.size();
  const std::size_t round = stages * plan.chunks;
  const std::size_t chunk = unit % round / stages;
  const auto at = pass == Pass::kForward ? chunk : plan.chunks - 1 - chunk;
  return {pass, mine[unit / round * stages + unit % stages], static_cast<std::uint32_t>(at)};
}

Passes interleaved(const Plan& plan, const std::vector<MicroBatch>& mine, std::size_t behind) {
  const std::size_t units = mine.size() * plan.chunks;
  std::size_t forwards = std::min(units, 2 * behind + (plan.chunks - 1) * plan.stages.size());
  Passes passes;
  passes.reserve(2 * units);
  for (std::size_t i = 0; i < forwards; ++i) {
    passes.push_back(interleaved_unit(plan, mine, Pass::kForward, i));
  }
  for (std::size_t i = 0; i < units; ++i) {
    if (forwards < units) {
      passes.push_back(interleaved_unit(plan, mine, Pass::kForward, forwards++));
    }
    passes.push_back(interleaved_unit(plan, mine, Pass::kBackward, i));
  }
  return passes;
}

/// What the letters of the plan's own order say.
Passes as_ordered(const Plan& plan, const std::vector<MicroBatch>& mine, const std::string& order) {
  std::size_t forwards = 0;
  std::size_t backwards = 0;
  std::size_t weights = 0;
  Passes passes;
  passes.reserve(order.size());
  const std::size_t units = mine.size() * plan.chunks;
  for (const char letter : order) {
    const Pass pass = letter == 'F'   ? Pass::kForward
                      : letter == 'B' ? Pass::kBackward
                      : letter == 'I' ? Pass::kBackwardInput
                                      : Pass::kBackwardWeight;
    std::size_t& next = letter == 'F' ? forwards : letter == 'W' ? weights : backwards;
    HOLMES_ASSERT(next < units, "check_schedule() has counted the passes");
    passes.push_back(plan.chunks == 1 ? ScheduledPass{pass, mine[next]}
                                      : interleaved_unit(plan, mine, pass, next));
    ++next;
  }
  return passes;
}

const Share& share_of(const Plan& plan, StageIndex stage, DeviceId device) {
  for (const Share& share : plan.stages[stage.index()].shares) {
    const auto devices = share.devices();
    if (std::find(devices.begin(), devices.end(), device) != devices.end()) return share;
  }
  assertion_failed("a device of the stage", __FILE__, __LINE__, "the device has no share");
}

bool same_shares(const Plan& plan) {
  const auto& first = plan.stages.front().shares;
  return std::all_of(plan.stages.begin(), plan.stages.end(), [&](const StagePlan& stage) {
    return std::equal(first.begin(), first.end(), stage.shares.begin(), stage.shares.end(),
                      [](const Share& a, const Share& b) { return a.leaves == b.leaves; });
  });
}

Status check_chunks(const Plan& plan) {
  const std::size_t stages = plan.stages.size();
  if (!same_shares(plan)) {
    return invalid(
        "schedule interleaved needs the same replicas with the same leaves at every stage; use "
        "1f1b, or set parallel.data to a degree that every stage has");
  }
  for (const StagePlan& stage : plan.stages) {
    if (stage.last_block - stage.first_block + 1 < plan.chunks) {
      return invalid("schedule interleaved with " + std::to_string(plan.chunks) +
                     " chunks needs so many blocks at every stage; use fewer stages or 1f1b");
    }
  }
  for (const Share& share : plan.stages.front().shares) {
    const auto count = plan.micro_batches(StageIndex(0), share.device).size();
    if (count % stages == 0) continue;
    return invalid("schedule interleaved needs a multiple of its " + std::to_string(stages) +
                   " stages of micro-batches for each replica, but one has " +
                   std::to_string(count) + "; use 1f1b or another train.batch");
  }
  return {};
}

Status check_order(const Plan& plan, const Share& share, std::size_t units) {
  const auto count = [&](char letter) {
    return static_cast<std::size_t>(std::count(share.order.begin(), share.order.end(), letter));
  };
  const std::size_t whole = count('B');
  const std::size_t split = count('I');
  const bool complete = count('F') == units && whole + split == units &&
                        (whole == 0 || split == 0) && count('W') == split &&
                        share.order.size() == 2 * units + split;
  if (complete) return {};
  return invalid("plan: device " + std::to_string(share.device.value()) + "'s order of " +
                 std::to_string(share.order.size()) +
                 " passes is not one forward and one "
                 "backward, whole or in two parts, of each of its " +
                 std::to_string(units / plan.chunks) + " micro-batches");
}

/// Every word complete, and all of them together executable.
Status check_orders(const Plan& plan) {
  if (plan.chunks == 0) return invalid("plan: a stage has no chunk");
  if (plan.chunks > 1) HOLMES_TRY(check_chunks(plan));
  const std::size_t of_leaf = plan.job.micro_batch_count() / plan.job.reduction_leaves;
  for (const StagePlan& stage : plan.stages) {
    for (const Share& share : stage.shares) {
      const std::size_t leaves = share.leaves.last - share.leaves.first + 1;
      HOLMES_TRY(check_order(plan, share, leaves * of_leaf * plan.chunks));
    }
  }
  const Pipeline pipeline = bare_pipeline(plan);
  if (PipelineRun(pipeline).play(orders_of(plan)) < kNever) return {};
  return invalid("plan: the orders of its passes wait for one another for ever");
}

}  // namespace

char letter_of(Pass pass) {
  return "FBIW"[static_cast<std::size_t>(pass)];
}

std::vector<ScheduledPass> schedule(const Plan& plan, StageIndex stage, DeviceId device) {
  const auto mine = plan.micro_batches(stage, device);
  const std::size_t behind = stages_behind(plan, stage);
  switch (plan.schedule) {
    case ScheduleKind::k1F1B:
      return one_forward_one_backward(mine, behind);
    case ScheduleKind::kGPipe:
      return all_forward_all_backward(mine);
    case ScheduleKind::kInterleaved:
      return interleaved(plan, mine, behind);
    case ScheduleKind::kZeroBubble:
      return zero_bubble(mine, behind, stage.index());
    case ScheduleKind::kNetworkAware:
      if (mine.empty()) return {};
      return as_ordered(plan, mine, share_of(plan, stage, device).order);
  }
  assertion_failed("known schedule", __FILE__, __LINE__, "unknown schedule");
}

std::string order_of(const Plan& plan, StageIndex stage, DeviceId device) {
  std::string order;
  for (const ScheduledPass& pass : schedule(plan, stage, device)) order += letter_of(pass.pass);
  return order;
}

Status check_schedule(const Plan& plan) {
  if (plan.schedule == ScheduleKind::kInterleaved && !plan.empty()) {
    if (plan.chunks < 2) return invalid("schedule interleaved needs at least 2 chunks a stage");
    return check_chunks(plan);
  }
  if (plan.schedule == ScheduleKind::kNetworkAware && !plan.empty()) return check_orders(plan);
  if (plan.chunks != 1) return invalid("only schedule interleaved has more than one chunk a stage");
  return {};
}

bool executed_by_runtime(const Plan& plan) {
  if (!executed_by_runtime(plan.schedule) || plan.chunks > 1) return false;
  if (plan.schedule != ScheduleKind::kNetworkAware) return true;
  return std::all_of(plan.stages.begin(), plan.stages.end(), [](const StagePlan& stage) {
    return std::all_of(stage.shares.begin(), stage.shares.end(), [](const Share& share) {
      return share.order.find(letter_of(Pass::kBackwardWeight)) == std::string::npos;
    });
  });
}

std::uint32_t in_flight_max(const std::vector<ScheduledPass>& passes) {
  std::uint32_t held = 0;
  std::uint32_t most = 0;
  for (const ScheduledPass& pass : passes) {
    if (pass.pass == Pass::kForward) {
      most = std::max(most, ++held);
    } else if (pass.pass != Pass::kBackwardInput) {  // what the weights need stays until then
      --held;
    }
  }
  return most;
}

std::uint32_t in_flight_max(const Plan& plan, StageIndex stage, DeviceId device) {
  return in_flight_max(schedule(plan, stage, device));
}

}  // namespace holmes::partition
