#include "replan.hpp"

#include <algorithm>
#include <optional>

namespace holmes::actors {

namespace {

/// The hosts that are left as a cluster of their own, and which devices those are.
struct Remainder {
  partition::Cluster cluster;
  std::vector<DeviceId> devices;  ///< In the whole cluster, by number in this one.
};

Remainder remainder_of(const partition::Cluster& whole, const std::vector<bool>& is_left) {
  Remainder rest{whole, {}};
  rest.cluster.hosts.clear();
  std::uint32_t device = 0;
  for (std::size_t host = 0; host < whole.hosts.size(); ++host) {
    if (is_left[host]) rest.cluster.hosts.push_back(whole.hosts[host]);
    for (std::size_t i = 0; i < whole.hosts[host].devices.size(); ++i, ++device)
      if (is_left[host]) rest.devices.emplace_back(device);
  }
  return rest;
}

partition::Plan renamed(partition::Plan plan, const std::vector<DeviceId>& devices) {
  const auto rename = [&devices](DeviceId& device) { device = devices.at(device.index()); };
  for (auto& stage : plan.stages)
    for (auto& share : stage.shares) {
      rename(share.device);
      std::for_each(share.peers.begin(), share.peers.end(), rename);
    }
  for (auto& group : plan.groups) std::for_each(group.devices.begin(), group.devices.end(), rename);
  return plan;
}

/// What to ask the planner for, best first.
std::vector<partition::PlanOptions> wishes(const JobConfig& job, std::uint32_t devices) {
  std::vector<partition::PlanOptions> wishes{job.parallel};
  const auto wish = [&](std::uint32_t pipeline, std::uint32_t data) {
    auto options = job.parallel;
    options.pipeline = pipeline;
    options.data = data;
    wishes.push_back(options);
  };
  wish(job.parallel.pipeline, 0);
  const auto most = job.parallel.pipeline == 0 ? devices : job.parallel.pipeline;
  for (auto stages = std::min(most, devices); stages > 0; --stages) {
    wish(stages, 0);
    wish(stages, devices / stages);
  }
  return wishes;
}

}  // namespace

Result<partition::Plan> plan_for(const JobConfig& job, const partition::JobShape& shape,
                                 const std::vector<bool>& is_left) {
  auto rest = remainder_of(job.cluster, is_left);
  if (rest.devices.empty()) return Error(ErrorCode::kInvalidArgument, "no host is left");
  JobConfig smaller = job;
  smaller.cluster = std::move(rest.cluster);
  smaller.train.shape = shape;
  std::optional<Error> first;
  for (const auto& options : wishes(job, static_cast<std::uint32_t>(rest.devices.size()))) {
    smaller.parallel = options;
    auto plan = plan_of(smaller);
    if (plan && partition::check_runnable(*plan)) return renamed(*std::move(plan), rest.devices);
    if (!plan && !first) first = plan.error();
  }
  return first->in("no plan fits the hosts that are left");
}

}  // namespace holmes::actors
