#include "agent_restarts.hpp"

namespace holmes::actors {

AgentRestarts::AgentRestarts(Executor& executor, ComputeQueue& blocking, Logger log,
                             Options options)
    : executor_(executor),
      blocking_(blocking),
      log_(std::move(log)),
      options_(std::move(options)) {}

AgentRestarts::~AgentRestarts() {
  stop();
}

void AgentRestarts::failed(HostId host) {
  if (stopped_ || restarts_[host] == options_.restarts_max) return;
  ++restarts_[host];
  timers_[host] = executor_.post_after(options_.pause, [this, host] { start(host); });
}

void AgentRestarts::start(HostId host) {
  timers_.erase(host);
  const auto process = std::make_shared<Result<int>>(0);
  blocking_.submit(
      ComputePriority::kPass, {},
      [start = options_.start, host, process] { *process = start(host); }, executor_,
      [this, alive = std::weak_ptr<bool>(alive_), host, process] {
        if (alive.expired()) return;
        if (*process) return options_.started(host, **process);
        log_.warning("the agent of host " + std::to_string(host.value()) +
                     " cannot be started again: " + process->error().message());
      });
}

void AgentRestarts::stop() {
  stopped_ = true;
  for (const auto& [host, timer] : timers_) executor_.cancel(timer);
  timers_.clear();
}

}  // namespace holmes::actors
