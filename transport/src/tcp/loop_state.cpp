#include "tcp/loop_state.hpp"

#include <unistd.h>

#include <asio/post.hpp>

#include "holmes/base/random.hpp"

namespace holmes::transport::tcp {

namespace {

/// Tasks that may still run after stop(): a task that posts itself for ever must not keep it.
constexpr std::size_t kDrainTasksMax = 1'000'000;
constexpr Duration kRunTurn = std::chrono::seconds(1);

}  // namespace

LoopState::LoopState(bool busy_poll)
    : busy_poll_(busy_poll), io_(std::in_place, 1), work_(asio::make_work_guard(*io_)) {}

void LoopState::post(Task task) {
  if (finished_) return;
  asio::post(*io_, std::move(task));
}

Executor::TimerId LoopState::post_after(Duration delay, Task task) {
  const auto id = next_timer_++;
  if (finished_) return id;
  if (on_loop_thread()) {
    add_timer(id, delay, std::move(task));
  } else {
    const auto due = clock_.now() + delay;
    post([this, id, due, task = std::move(task)]() mutable {
      add_timer(id, due - clock_.now(), std::move(task));
    });
  }
  return id;
}

void LoopState::add_timer(TimerId id, Duration delay, Task task) {
  if (stopping_) return;
  auto& timer =
      timers_.emplace(id, Timer{asio::steady_timer(*io_), std::move(task)}).first->second.timer;
  timer.expires_after(delay);
  timer.async_wait([this, id](std::error_code error) {
    if (error) return;
    auto node = timers_.extract(id);  // empty when cancelled after it expired
    if (!node.empty()) node.mapped().task();
  });
}

void LoopState::cancel(TimerId timer) {
  timers_.erase(timer);
}

void LoopState::run() {
  loop_thread_ = std::this_thread::get_id();
  while (!stopping_) run_one(kRunTurn);
  finish();
  loop_thread_ = std::thread::id();
}

void LoopState::run_one(Duration limit) {
  if (!busy_poll_) {
    io_->run_one_for(limit);
    return;
  }
  if (io_->poll_one() == 0) std::this_thread::yield();  // where ranks share a core
}

bool LoopState::run_until(const std::function<bool()>& done, Duration limit) {
  loop_thread_ = std::this_thread::get_id();
  const auto deadline = clock_.now() + limit;
  bool reached = done();
  while (!reached && !stopping_) {
    const auto left = deadline - clock_.now();
    if (left <= Duration::zero()) break;
    run_one(left);
    reached = done();
  }
  loop_thread_ = std::thread::id();
  return reached;
}

void LoopState::request_stop() {
  post([this] { stopping_ = true; });
}

void LoopState::finish() {
  if (finished_) return;
  stopping_ = true;
  timers_.clear();
  for (const auto& weak : std::exchange(closables_, {}))
    if (const auto closable = weak.lock()) closable->shut();
  for (std::size_t i = 0; i < kDrainTasksMax && io_->poll_one() > 0; ++i) {
  }
  finished_ = true;
}

void LoopState::destroy() {
  work_.reset();
  io_.reset();
}

bool LoopState::add(std::weak_ptr<Closable> closable) {
  if (stopping_) return false;
  if (closables_.size() >= closables_sweep_at_) {
    std::erase_if(closables_, [](const auto& weak) { return weak.expired(); });
    closables_sweep_at_ = 2 * closables_.size() + 64;
  }
  closables_.push_back(std::move(closable));
  return true;
}

std::uint64_t LoopState::next_nonce() {
  const auto now = static_cast<std::uint64_t>(clock_.now().time_since_epoch().count());
  return mix64(now ^ mix64(static_cast<std::uint64_t>(::getpid()) << 32 | next_nonce_++));
}

}  // namespace holmes::transport::tcp
