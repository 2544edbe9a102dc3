// start_agent(): a host agent as a process.

#include <future>

#include "actor_runtime.hpp"
#include "holmes/actors/session.hpp"
#include "host_agent.hpp"
#include "socket_environment.hpp"

namespace holmes::actors {

namespace {

class AgentProcess final : public Agent {
 public:
  AgentProcess(AgentOptions options, std::shared_ptr<const transport::Tls> tls)
      : options_(std::move(options)),
        environment_(make_socket_environment(loop_, options_.log, std::move(tls))),
        end_(ended_.get_future()) {
    const auto& invitation = options_.invitation;
    loop_.start();
    on_loop([&] {
      agent_ = std::make_unique<HostAgent>(runtime_.system(), options_.log.named("agent"),
                                           invitation.host_name, invitation.job, *environment_,
                                           [this](AgentEnd end) { ended(std::move(end)); });
      agent_->start();
      handle_ = agent_->handle();
      agent_->join({invitation.coordinator}, options_.patience);
    });
  }

  ~AgentProcess() override {
    on_loop([this] { agent_.reset(); });
    loop_.stop();
    loop_.join();
  }

  void request_leave() override { caf::anon_send(handle_, LeaveAsked{}); }

  int wait() override { return exit_code(end_.get()); }

 private:
  static int exit_code(const AgentEnd& end) { return end.failed ? 1 : 0; }

  void ended(AgentEnd end) {
    if (end.failed)
      options_.log.error(end.reason);
    else
      options_.log.info(end.reason);
    if (options_.on_end) options_.on_end(exit_code(end), end.reason);
    ended_.set_value(std::move(end));
  }

  void on_loop(const std::function<void()>& task) {
    std::promise<void> done;
    loop_.post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }

  const AgentOptions options_;
  ActorRuntime runtime_;
  transport::EventLoop loop_;
  std::unique_ptr<HostEnvironment> environment_;
  std::unique_ptr<HostAgent> agent_;
  caf::actor handle_;
  std::promise<AgentEnd> ended_;
  std::future<AgentEnd> end_;
};

}  // namespace

Result<std::unique_ptr<Agent>> start_agent(AgentOptions options) {
  std::shared_ptr<const transport::Tls> tls;
  if (!options.credentials.empty()) {
    HOLMES_TRY_ASSIGN(tls, transport::Tls::make(options.credentials));
    options.credentials = {};
    const transport::CertifiedName needed{options.invitation.job, options.invitation.host_name};
    if (tls->name() != needed)
      return Error(ErrorCode::kInvalidArgument, "the credentials are those of " +
                                                    to_string(tls->name()) + ", not of " +
                                                    to_string(needed));
  }
  return std::unique_ptr<Agent>(std::make_unique<AgentProcess>(std::move(options), std::move(tls)));
}

}  // namespace holmes::actors
