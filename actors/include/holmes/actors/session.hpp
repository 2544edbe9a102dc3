#pragma once

// A Session is one training job seen from the process that started it: it owns the coordinator,
// has the host agents started, and reports typed events. `holmes train` and embedding services use
// nothing else. A process may have several at once. A session installs no signal handlers, never
// ends the process, and writes to nobody but its run folder and the Logger that it was given.
//
// Threads: methods may be called from any thread, on_event included (but for wait()). `on_event`
// runs on one thread of the session's, never inside a call, and must not block for long. Destroying
// a session that has not ended abandons the job: nothing is saved.

#include <functional>
#include <memory>
#include <optional>

#include "holmes/actors/events.hpp"
#include "holmes/actors/health.hpp"
#include "holmes/actors/job_config.hpp"
#include "holmes/base/credentials.hpp"
#include "holmes/base/log.hpp"

namespace holmes::actors {

/// What an agent process must be told to find its job; passed on its command line.
struct AgentInvitation {
  HostId host;  ///< Number in the cluster; agents need only the name.
  std::string host_name;
  std::string job;          ///< Job identity.
  std::string coordinator;  ///< "127.0.0.1:29400"
};

class Session;

/// How host agents come to life: as threads of this process (local_agents.hpp), or as processes,
/// here or by ssh (the launcher).
class AgentStarter {
 public:
  virtual ~AgentStarter() = default;
  /// Starts one agent; returns its process id.
  virtual Result<int> start(const AgentInvitation& invitation) = 0;
  /// Whose agent_exited() is to hear of agents that end: called before the first start(), and with
  /// null before that session goes. By default the embedder sees to it.
  virtual void report_to(Session* session) { static_cast<void>(session); }
};

struct SessionOptions {
  JobConfig job;
  /// Continue from the newest whole checkpoint of the run folder (an error if there is none).
  bool resume = false;
  /// Null: others start the agents. Must outlive the session.
  AgentStarter* starter = nullptr;
  /// Who says it belongs to this job; empty: that of the credentials, or a random name. At most 200
  /// bytes.
  std::string job_name = {};
  /// Of the coordinator, for jobs whose connections are under TLS (uses_tls()); the transport's
  /// Authority makes them. kInvalidArgument without them.
  Credentials credentials = {};
  /// Every host must have joined by then.
  Duration join_deadline = std::chrono::seconds(30);
  /// Called once, when every check has passed and before the first agent is started: the place to
  /// change what a refused job must leave alone. An error ends the start. May be empty.
  std::function<Status()> before_start;
  Logger log;
  std::function<void(const Event&)> on_event;  ///< May be empty.
};

class Session {
 public:
  virtual ~Session() = default;
  /// Finishes the running step, saves a checkpoint and ends. Idempotent.
  virtual void request_stop() = 0;
  /// The starter saw an agent process end. `last_words`: what it said last, if anything.
  virtual void agent_exited(HostId host, int wait_status, const std::string& last_words) = 0;
  /// How it is doing; costs little.
  virtual Health health() const = 0;
  /// Blocks until the job has ended one way or another. Not on the session's own thread.
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
  /// Of the host; empty: the coordinator does not ask for any.
  Credentials credentials = {};
  /// Called once, on the agent's thread, when its part has ended and before wait() returns. It must
  /// not destroy the agent. May be empty.
  std::function<void(int exit_code, const std::string& why)> on_end = {};
};
/// Runs a host agent in this process. kInvalidArgument: credentials that are none, or another's.
Result<std::unique_ptr<Agent>> start_agent(AgentOptions options);

}  // namespace holmes::actors
