// run_agent(): a host agent as a process.

#include <atomic>
#include <future>

#include "actor_runtime.hpp"
#include "holmes/actors/session.hpp"
#include "host_agent.hpp"
#include "socket_environment.hpp"

namespace holmes::actors {

int run_agent(const AgentOptions& options) {
  const auto& invitation = options.invitation;
  ActorRuntime runtime;
  transport::EventLoop loop;
  auto environment = make_socket_environment(loop, options.log);
  std::promise<AgentEnd> ended;
  std::unique_ptr<HostAgent> agent;
  loop.start();
  loop.post([&] {
    agent = std::make_unique<HostAgent>(
        runtime.system(), options.log.named("agent"), invitation.host, invitation.job, *environment,
        [&ended](AgentEnd end) { ended.set_value(std::move(end)); });
    agent->start();
    agent->join({invitation.coordinator});
  });
  const AgentEnd end = ended.get_future().get();

  std::promise<void> cleared;
  loop.post([&] {
    agent.reset();
    cleared.set_value();
  });
  cleared.get_future().wait();
  loop.stop();
  loop.join();
  if (end.failed)
    options.log.error(end.reason);
  else
    options.log.info(end.reason);
  return end.failed ? 1 : 0;
}

}  // namespace holmes::actors
