#pragma once

// What an EventLoop shares with its contexts and connections. Its io_context ends with the
// EventLoop; objects that live longer have let go of their sockets by then (Closable::shut).

#include <atomic>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>

#include "holmes/base/executor.hpp"

namespace holmes::transport::tcp {

/// Holds sockets: must let go of them, and complete what is pending, when the loop stops.
class Closable {
 public:
  virtual ~Closable() = default;
  virtual void shut() = 0;
};

class LoopState final : public Executor, public std::enable_shared_from_this<LoopState> {
 public:
  explicit LoopState(bool busy_poll);

  void post(Task task) override;
  TimerId post_after(Duration delay, Task task) override;
  void cancel(TimerId timer) override;
  const Clock& clock() const override { return clock_; }

  void run();
  bool run_until(const std::function<bool()>& done, Duration limit);
  void request_stop();
  bool on_loop_thread() const { return loop_thread_.load() == std::this_thread::get_id(); }
  /// Closes everything and runs what that completes; afterwards tasks are dropped.
  void finish();
  /// Only after finish(): destroys the io_context and all tasks in it.
  void destroy();

  /// On the loop's thread. False once the loop is stopping: shut the object instead.
  bool add(std::weak_ptr<Closable> closable);
  asio::io_context& io() { return *io_; }
  /// A number that no other call in this or another process is likely to get.
  std::uint64_t next_nonce();

 private:
  struct Timer {
    asio::steady_timer timer;
    Task task;
  };

  void add_timer(TimerId id, Duration delay, Task task);
  /// Runs a task, waiting for it at most `limit`.
  void run_one(Duration limit);

  const bool busy_poll_;
  SteadyClock clock_;
  std::optional<asio::io_context> io_;
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_;
  std::atomic<std::thread::id> loop_thread_;
  std::atomic<bool> finished_ = false;
  std::atomic<TimerId> next_timer_ = 1;
  std::atomic<std::uint64_t> next_nonce_ = 1;
  // Below: the loop's thread only.
  bool stopping_ = false;
  std::map<TimerId, Timer> timers_;
  std::vector<std::weak_ptr<Closable>> closables_;
  std::size_t closables_sweep_at_ = 64;
};

}  // namespace holmes::transport::tcp
