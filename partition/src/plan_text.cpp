#include "plan_text.hpp"

#include <algorithm>

#include "text.hpp"

namespace holmes::partition {

std::string_view to_string(Strategy strategy) {
  switch (strategy) {
    case Strategy::kMegatron:
      return "megatron";
    case Strategy::kHolmes:
      return "holmes";
    case Strategy::kAuto:
      return "auto";
    case Strategy::kMegatronLm:
      return "megatron-lm";
    case Strategy::kMegatronDeepspeed:
      return "megatron-deepspeed";
    case Strategy::kMegatronLlama:
      return "megatron-llama";
  }
  return "unknown";
}

std::string_view to_string(ScheduleKind schedule) {
  switch (schedule) {
    case ScheduleKind::k1F1B:
      return "1f1b";
    case ScheduleKind::kGPipe:
      return "gpipe";
    case ScheduleKind::kInterleaved:
      return "interleaved";
    case ScheduleKind::kZeroBubble:
      return "zero-bubble";
    case ScheduleKind::kNetworkAware:
      return "network-aware";
  }
  return "unknown";
}

std::string_view to_string(SplitRule rule) {
  switch (rule) {
    case SplitRule::kDefault:
      return "default";
    case SplitRule::kEqual:
      return "equal";
    case SplitRule::kFormula:
      return "formula";
    case SplitRule::kOptimal:
      return "optimal";
  }
  return "unknown";
}

std::string_view to_string(GroupKind kind) {
  switch (kind) {
    case GroupKind::kData:
      return "data";
    case GroupKind::kTied:
      return "tied";
    case GroupKind::kVote:
      return "vote";
    case GroupKind::kTensor:
      return "tensor";
  }
  return "unknown";
}

std::size_t data_degree(const Plan& plan) {
  std::size_t degree = 0;
  for (const StagePlan& stage : plan.stages) degree = std::max(degree, stage.shares.size());
  return degree;
}

std::vector<UnusedDevice> unused_devices(const Plan& plan, const Cluster& cluster) {
  std::vector<bool> used(cluster.device_count(), false);
  for (const DeviceId member : plan.members()) used[member.index()] = true;
  const std::string degrees = counted(data_degree(plan), "replica") + " of " +
                              (plan.stages.size() > 1 ? "each of " : "its ") +
                              counted(plan.stages.size(), "stage");
  const std::string by_degree = plan.strategy == Strategy::kAuto
                                    ? "since strategy auto found nothing faster than " + degrees
                                    : "since the plan has " + degrees + " (parallel.data)";
  std::vector<UnusedDevice> unused;
  std::uint32_t rank = 0;
  for (const Host& host : cluster.hosts) {
    const std::size_t whole = host.devices.size() / plan.tensor * plan.tensor;
    for (std::size_t i = 0; i < host.devices.size(); ++i, ++rank) {
      if (used[rank]) continue;
      unused.push_back(
          {DeviceId(rank), i < whole ? by_degree
                                     : "since its host's " + std::to_string(host.devices.size()) +
                                           " devices are no multiple of parallel.tensor = " +
                                           std::to_string(plan.tensor)});
    }
  }
  return unused;
}

}  // namespace holmes::partition
