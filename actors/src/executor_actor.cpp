#include "executor_actor.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>

namespace holmes::actors {

namespace {

caf::actor_companion& companion(const caf::actor& handle) {
  return *caf::actor_cast<caf::actor_companion*>(handle);
}

}  // namespace

ExecutorActor::ExecutorActor(caf::actor_system& system, Executor& executor, Logger log)
    : executor_(executor),
      log_(std::move(log)),
      context_(&system),
      handle_(system.spawn<caf::actor_companion>()) {}

ExecutorActor::~ExecutorActor() {
  alive_.reset();
  auto& self = companion(handle_);
  self.on_enqueue({});
  // What actor_companion::disconnect() does; Debian's library does not export it.
  static_cast<caf::monitorable_actor&>(self).cleanup(caf::exit_reason::normal, &context_);
}

void ExecutorActor::start() {
  auto& self = companion(handle_);
  self.context(&context_);
  self.become(make_behavior());
  self.on_enqueue([this, alive = std::weak_ptr<const bool>(alive_)](caf::mailbox_element_ptr item) {
    auto shared = std::shared_ptr<caf::mailbox_element>(item.release(), item.get_deleter());
    executor_.post([this, alive, shared = std::move(shared)] {
      if (!alive.expired()) companion(handle_).activate(&context_, *shared);
    });
  });
}

}  // namespace holmes::actors
