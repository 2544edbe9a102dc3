#pragma once

// Host agents as processes of this machine: the direct children of `holmes train`. Each has its own
// process group, so that Ctrl-C of a terminal reaches `holmes train` alone, and dies with it
// whatever it dies of. It starts and reaps processes; what their end means is the session's to say.
//
// Threads: methods from any thread. Callbacks run on one thread of its own and must neither block
// for long nor call back into it.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "holmes/actors/session.hpp"
#include "holmes/base/units.hpp"
#include "run_folder.hpp"

namespace holmes::launcher {

class LocalProcesses final : public actors::AgentStarter {
 public:
  struct Options {
    /// What is executed, and its arguments from argv[0] on.
    std::string executable = "/proc/self/exe";
    std::function<std::vector<std::string>(const actors::AgentInvitation&)> arguments;
    /// What the agent finds at its standard input. Empty: nothing.
    std::function<Result<std::string>(const actors::AgentInvitation&)> input = {};
    /// Where the output of a host's agent goes.
    std::function<std::filesystem::path(HostId)> log_file;
    /// The processes that run, after each start and after each end. Optional.
    std::function<void(const std::vector<std::pair<HostId, int>>&)> on_change;
    /// How long the destructor waits for processes that are ending before it kills them.
    Duration grace = std::chrono::seconds(3);
  };
  using OnExit = std::function<void(HostId, int wait_status)>;

  explicit LocalProcesses(Options options);
  ~LocalProcesses() override;
  LocalProcesses(const LocalProcesses&) = delete;
  LocalProcesses& operator=(const LocalProcesses&) = delete;

  Result<int> start(const actors::AgentInvitation& invitation) override;

  /// Who hears of ended processes from now on, and of those that ended before anybody listened.
  /// With an empty function nobody; no call is running once this returns.
  void on_exit(OnExit listener);

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace holmes::launcher
