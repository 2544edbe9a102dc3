#include "holmes/actors/local_agents.hpp"

#include <unistd.h>

#include <map>
#include <mutex>

namespace holmes::actors {

/// Agents end on threads of their own, sessions start them from others: two locks, since an agent
/// that is replaced may be about to report.
class LocalAgents::State {
 public:
  explicit State(Logger log) : log_(std::move(log)) {}
  ~State() {
    report_to(nullptr);
    agents_.clear();
  }

  void start(const AgentInvitation& invitation) {
    const HostId host = invitation.host;
    AgentOptions options{invitation, log_, {}, {}};
    options.on_end = [this, host](int exit_code, const std::string& why) {
      ended(host, exit_code, why);
    };
    auto agent = start_agent(std::move(options)).value();  // it has no credentials to be wrong
    {
      const std::lock_guard lock(agents_mutex_);
      agents_[host].swap(agent);
    }  // the one before ends outside the lock
  }

  void report_to(Session* session) {
    const std::lock_guard lock(session_mutex_);
    session_ = session;
  }

  void request_leave(HostId host) {
    const std::lock_guard lock(agents_mutex_);
    const auto found = agents_.find(host);
    if (found != agents_.end()) found->second->request_leave();
  }

 private:
  void ended(HostId host, int exit_code, const std::string& why) {
    constexpr int kExitCodeShift = 8;  // of a status as waitpid() gives it
    const std::lock_guard lock(session_mutex_);
    if (session_ != nullptr) session_->agent_exited(host, exit_code << kExitCodeShift, why);
  }

  const Logger log_;
  std::mutex session_mutex_;
  Session* session_ = nullptr;
  std::mutex agents_mutex_;
  std::map<HostId, std::unique_ptr<Agent>> agents_;
};

LocalAgents::LocalAgents(Logger log) : state_(std::make_unique<State>(std::move(log))) {}
LocalAgents::~LocalAgents() = default;

Result<int> LocalAgents::start(const AgentInvitation& invitation) {
  state_->start(invitation);
  return static_cast<int>(::getpid());
}

void LocalAgents::report_to(Session* session) {
  state_->report_to(session);
}

void LocalAgents::request_leave(HostId host) {
  state_->request_leave(host);
}

}  // namespace holmes::actors
