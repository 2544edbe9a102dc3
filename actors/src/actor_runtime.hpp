#pragma once

// The CAF system behind a process's actors. They run on our executors, so it has one idle thread.

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

namespace holmes::actors {

/// Must outlive every actor and every handle.
class ActorRuntime {
 public:
  ActorRuntime() : system_(config_) {}
  caf::actor_system& system() { return system_; }

 private:
  struct Config : caf::actor_system_config {
    Config() {
      set("scheduler.max-threads", std::size_t{1});
      set("logger.verbosity", caf::atom("quiet"));
    }
  };
  Config config_;
  caf::actor_system system_;
};

}  // namespace holmes::actors
