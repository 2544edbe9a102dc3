#pragma once

// Base of every actor of Holmes: a CAF actor (a companion) whose messages are handled on an
// Executor, that of an event loop in production or of a simulated world. So one scheduler decides
// the order of everything, and no message waits for CAF's own threads (docs/adr/0002).
//
// Ownership: whoever spawns an actor holds it by unique_ptr and destroys it on its executor, or
// after the executor has stopped. Other actors hold only its handle; what is sent to a handle whose
// actor is gone is dropped.

#include <memory>
#include <string>

#include <caf/actor.hpp>
#include <caf/actor_companion.hpp>
#include <caf/behavior.hpp>
#include <caf/scoped_execution_unit.hpp>
#include <caf/send.hpp>

#include "holmes/base/executor.hpp"
#include "holmes/base/log.hpp"

namespace holmes::actors {

class ExecutorActor {
 public:
  ExecutorActor(const ExecutorActor&) = delete;
  ExecutorActor& operator=(const ExecutorActor&) = delete;
  virtual ~ExecutorActor();

  /// Where to send messages; valid after start().
  const caf::actor& handle() const { return handle_; }
  /// Begins to handle messages. Once, by the owner, before any message is sent.
  void start();

 protected:
  ExecutorActor(caf::actor_system& system, Executor& executor, Logger log);

  /// The handlers; called once by start().
  virtual caf::behavior make_behavior() = 0;

  Executor& executor() { return executor_; }
  const Clock& clock() const { return executor_.clock(); }
  const Logger& log() const { return log_; }
  /// Wraps a callback of this actor that something else will call: it does nothing once the actor
  /// is gone.
  template <class Fn>
  auto guarded(Fn fn) {
    return [alive = std::weak_ptr<const bool>(alive_), fn = std::move(fn)](auto&&... args) {
      if (!alive.expired()) fn(std::forward<decltype(args)>(args)...);
    };
  }

 private:
  Executor& executor_;
  Logger log_;
  caf::scoped_execution_unit context_;
  caf::actor handle_;
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace holmes::actors
