#pragma once

// Host agents in this process: for programs that train beside their other work, and for tests. Each
// has an event loop and compute threads of its own, and talks to the others over loopback as agents
// in processes do. What they do not survive is the end of this process.
//
// One object serves one session and must outlive it. Methods from any thread.

#include <memory>

#include "holmes/actors/session.hpp"

namespace holmes::actors {

class LocalAgents final : public AgentStarter {
 public:
  /// `log` is told what the agents have to say; by default nobody is.
  explicit LocalAgents(Logger log = {});
  /// Ends the agents that are left.
  ~LocalAgents() override;
  LocalAgents(const LocalAgents&) = delete;
  LocalAgents& operator=(const LocalAgents&) = delete;

  /// Starts the agent of a host, in place of an earlier one. Returns this process's id.
  Result<int> start(const AgentInvitation& invitation) override;
  void report_to(Session* session) override;
  /// Asks a host's agent to hand over its state and leave; the job goes on with the others.
  void request_leave(HostId host);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace holmes::actors
