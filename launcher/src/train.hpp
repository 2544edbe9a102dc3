#pragma once

// `holmes train`: everything around a session. The session itself, the processes and the terminal
// come from outside, so that tests can put others in their place.

#include <functional>
#include <memory>

#include "cli.hpp"
#include "console.hpp"
#include "holmes/actors/session.hpp"
#include "holmes/base/clock.hpp"

namespace holmes::launcher {

struct TrainServices {
  Console& console;
  const Clock& clock;
  Logger log;
  LogOptions log_options;  ///< What the agents are told.
  bool color = false;
  bool unicode = true;
  std::function<Result<actors::JobConfig>(const actors::ConfigSource&)> load_job;
  std::function<Result<std::unique_ptr<actors::Session>>(actors::SessionOptions)> start_session;
  std::string agent_executable = "/proc/self/exe";
};

/// How the agents of a job come to life.
struct AgentStart {
  std::string executable = "/proc/self/exe";
  /// Makes the words that start a host's agent of those that it would be started with here, from
  /// argv[0] on. Empty: they stay.
  std::function<std::vector<std::string>(HostId, const std::vector<std::string>&)> words = {};
  bool by_others = false;  ///< None is started.
  std::string job_name = {};
  Credentials credentials = {};  ///< The coordinator's; empty: made where the job needs some.
  /// What a host's agent reads from its standard input: its credentials. Empty: it needs none.
  std::function<Result<std::string>(const actors::AgentInvitation&)> input = {};
  Duration join_deadline = std::chrono::seconds(30);
};

/// Runs the job on this machine to its end; returns the exit code.
int train(const TrainCommand& command, const TrainServices& services);

/// Runs a job that has been loaded, at `start`, by agents that start as `agents` says.
int train(const TrainCommand& command, const actors::JobConfig& job, AgentStart agents,
          TimePoint start, const TrainServices& services);

}  // namespace holmes::launcher
