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

/// Runs the job to its end; returns the exit code.
int train(const TrainCommand& command, const TrainServices& services);

}  // namespace holmes::launcher
