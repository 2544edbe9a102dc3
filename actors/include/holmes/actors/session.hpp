#pragma once

// A Session is one training job seen from the process that started it: it owns the coordinator,
// has the host agents started, and reports typed events. `holmes train` and embedding services use
// nothing else.
//
// Threads: methods may be called from any thread. `on_event` runs on one thread of the session's,
// never inside a call, and must not block for long.

#include <functional>
#include <memory>
#include <optional>

#include "holmes/actors/events.hpp"
#include "holmes/actors/job_config.hpp"
#include "holmes/base/log.hpp"

namespace holmes::actors {

/// What an agent process must be told to find its job; passed on its command line.
struct AgentInvitation {
  HostId host;  ///< Number in the cluster; agents need only the name.
  std::string host_name;
  std::string job;          ///< Job identity.
  std::string coordinator;  ///< "127.0.0.1:29400"
};

/// How host agents come to life; implemented by the launcher (processes here or by ssh).
class AgentStarter {
 public:
  virtual ~AgentStarter() = default;
  /// Starts one agent; returns its process id.
  virtual Result<int> start(const AgentInvitation& invitation) = 0;
};

struct SessionOptions {
  JobConfig job;
  /// Continue from the newest whole checkpoint of the run folder (an error if there is none).
  bool resume = false;
  /// Null: others start the agents.
  AgentStarter* starter = nullptr;
  /// Who says it belongs to this job; empty: a random name is made. At most 200 bytes.
  std::string job_name = {};
  /// Every host must have joined by then.
  Duration join_deadline = std::chrono::seconds(30);
  /// Called once, when every check has passed and before the first agent is started: the place to
  /// change what a refused job must leave alone. An error ends the start. May be empty.
  std::function<Status()> before_start;
  Logger log;
  std::function<void(const Event&)> on_event;
};

enum class Outcome : std::uint8_t {
  kFinished,     ///< All steps done, checkpoint saved.
  kInterrupted,  ///< Stopped on request, checkpoint saved.
  kFailed,
};

class Session {
 public:
  virtual ~Session() = default;
  /// Finishes the running step, saves a checkpoint and ends. Idempotent.
  virtual void request_stop() = 0;
  /// The starter saw an agent process end. `last_words`: what it said last, if anything.
  virtual void agent_exited(HostId host, int wait_status, const std::string& last_words) = 0;
  /// Blocks until the job has ended one way or another.
  virtual Outcome wait() = 0;
};

/// Checks the job, plans, opens the coordinator's port and starts the agents.
/// kInvalidArgument for everything that is wrong with the job before anything starts.
Result<std::unique_ptr<Session>> start_session(SessionOptions options);

/// A host's part in a job, seen from the process that serves it. Methods from any thread.
class Agent {
 public:
  virtual ~Agent() = default;
  /// The host hands its state over to the others and leaves; wait() says when. If they cannot do
  /// without it, the job saves a checkpoint and stops. Idempotent.
  virtual void request_leave() = 0;
  /// Blocks until the host's part has ended; returns the process's exit code. Once.
  virtual int wait() = 0;
};

struct AgentOptions {
  AgentInvitation invitation;
  Logger log;
  Duration patience = {};  ///< How long nobody may listen at the coordinator's address.
};
/// Runs a host agent in this process.
std::unique_ptr<Agent> start_agent(AgentOptions options);

}  // namespace holmes::actors
