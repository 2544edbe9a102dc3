#pragma once

// Starts the agent of a host again after it has failed, a bounded number of times. Whether the host
// may come back into the job is the coordinator's to say. Owned by the session; on its executor.

#include <functional>
#include <map>
#include <memory>

#include "holmes/actors/session.hpp"
#include "holmes/base/compute_queue.hpp"
#include "holmes/base/executor.hpp"

namespace holmes::actors {

class AgentRestarts {
 public:
  struct Options {
    std::uint32_t restarts_max = 0;  ///< Of each host.
    /// What made an agent fail may take a moment to pass.
    Duration pause = std::chrono::seconds(1);
    std::function<Result<int>(HostId)> start;  ///< Blocks; runs on `blocking`.
    std::function<void(HostId, int process)> started;
  };
  /// Both must outlive it. What `start` uses must outlive `blocking`.
  AgentRestarts(Executor& executor, ComputeQueue& blocking, Logger log, Options options);
  ~AgentRestarts();
  AgentRestarts(const AgentRestarts&) = delete;
  AgentRestarts& operator=(const AgentRestarts&) = delete;

  /// The agent of `host` has ended otherwise than by leaving.
  void failed(HostId host);
  /// The job is over: nobody is started any more.
  void stop();

 private:
  void start(HostId host);

  Executor& executor_;
  ComputeQueue& blocking_;
  Logger log_;
  const Options options_;
  std::map<HostId, std::uint32_t> restarts_;
  std::map<HostId, Executor::TimerId> timers_;
  bool stopped_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace holmes::actors
