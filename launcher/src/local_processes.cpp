#include "local_processes.hpp"

#include <cerrno>
#include <csignal>
#include <deque>
#include <future>
#include <mutex>
#include <thread>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spawn.hpp"

namespace holmes::launcher {

/// The thread that forks and reaps. It lives as long as any child: the kernel's parent-death signal
/// goes by the thread that forked, so no passing thread may do it.
class LocalProcesses::Loop {
 public:
  explicit Loop(Options options)
      : options_(std::move(options)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        thread_([this] { run(); }) {}

  ~Loop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake();
    thread_.join();
  }

  Result<int> start(const actors::AgentInvitation& invitation) {
    constexpr auto kDeadline = std::chrono::seconds(10);
    auto request = std::make_shared<Request>();
    request->invitation = invitation;
    auto answer = request->answer.get_future();
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    wake();
    if (answer.wait_for(kDeadline) != std::future_status::ready)
      return Error(ErrorCode::kTimeout, "the agent's process did not start within 10 s");
    return answer.get();
  }

  void on_exit(OnExit listener) {
    const std::lock_guard lock(exit_mutex_);
    listener_ = std::move(listener);
    if (!listener_) return;
    for (const auto& [host, status] : unheard_) listener_(host, status);
    unheard_.clear();
  }

 private:
  struct Request {
    actors::AgentInvitation invitation;
    std::promise<Result<int>> answer;
  };
  struct Child {
    HostId host;
    int pid = 0;
    Descriptor descriptor;  // readable once the process has ended
  };

  void wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
  }

  bool stopping() {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }

  void run() {
    while (!stopping()) {
      wait(kTick);
      serve_requests();
      reap();
    }
    for (Duration waited{}; !children_.empty(); waited += kStopTick) {
      if (waited >= options_.grace)
        for (const auto& child : children_) ::kill(child.pid, SIGKILL);
      wait(kStopTick);
      reap();
    }
  }

  void wait(Duration timeout) {
    std::vector<pollfd> watched{{wake_.get(), POLLIN, 0}};
    for (const auto& child : children_) watched.push_back({child.descriptor.get(), POLLIN, 0});
    const auto timeout_ms = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
    ::poll(watched.data(), watched.size(), static_cast<int>(timeout_ms));
    std::uint64_t count = 0;
    [[maybe_unused]] const auto read = ::read(wake_.get(), &count, sizeof count);
  }

  void serve_requests() {
    std::deque<std::shared_ptr<Request>> requests;
    {
      const std::lock_guard lock(mutex_);
      requests.swap(requests_);
    }
    for (const auto& request : requests) request->answer.set_value(launch(request->invitation));
  }

  Result<int> launch(const actors::AgentInvitation& invitation) {
    const HostId host = invitation.host;
    Program program{options_.executable, options_.arguments(invitation), options_.log_file(host)};
    if (options_.input) {
      HOLMES_TRY_ASSIGN(program.input, options_.input(invitation));
    }
    auto pid = spawn(program);
    if (!pid) return pid;
    children_.push_back({host, *pid, watch_process(*pid)});
    tell_who_runs();
    return pid;
  }

  void tell_who_runs() const {
    if (!options_.on_change) return;
    std::vector<std::pair<HostId, int>> running;
    for (const auto& child : children_) running.emplace_back(child.host, child.pid);
    options_.on_change(running);
  }

  void reap() {
    std::vector<std::pair<HostId, int>> ended;
    std::erase_if(children_, [&ended](const Child& child) {
      int status = 0;
      if (::waitpid(child.pid, &status, WNOHANG) == 0) return false;
      ended.emplace_back(child.host, status);
      return true;
    });
    if (!ended.empty()) tell_who_runs();
    for (const auto& [host, status] : ended) report(host, status);
  }

  void report(HostId host, int status) {
    const std::lock_guard lock(exit_mutex_);
    if (listener_) {
      listener_(host, status);
    } else {
      unheard_.emplace_back(host, status);
    }
  }

  // Ends of processes wake the loop through their descriptors; the tick is for kernels without
  // them.
  static constexpr Duration kTick = std::chrono::milliseconds(100);
  static constexpr Duration kStopTick = std::chrono::milliseconds(20);

  const Options options_;
  const Descriptor wake_;
  std::vector<Child> children_;  // the loop's
  std::mutex mutex_;
  std::deque<std::shared_ptr<Request>> requests_;
  bool stopping_ = false;
  std::mutex exit_mutex_;  // held while the listener runs
  OnExit listener_;
  std::vector<std::pair<HostId, int>> unheard_;
  std::thread thread_;
};

LocalProcesses::LocalProcesses(Options options)
    : loop_(std::make_unique<Loop>(std::move(options))) {}
LocalProcesses::~LocalProcesses() = default;

Result<int> LocalProcesses::start(const actors::AgentInvitation& invitation) {
  return loop_->start(invitation);
}

void LocalProcesses::on_exit(OnExit listener) {
  loop_->on_exit(std::move(listener));
}

}  // namespace holmes::launcher
