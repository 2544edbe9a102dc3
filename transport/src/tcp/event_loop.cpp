#include "tcp/loop_state.hpp"

#include "holmes/transport/tcp.hpp"

namespace holmes::transport {

EventLoop::EventLoop(bool busy_poll) : state_(std::make_shared<tcp::LoopState>(busy_poll)) {}

EventLoop::~EventLoop() {
  stop();
  join();
  state_->finish();  // for a loop that never had a thread
  state_->destroy();
}

void EventLoop::start() {
  HOLMES_ASSERT(!thread_.joinable(), "an event loop is started once");
  thread_ = std::thread([state = state_] { state->run(); });
}

void EventLoop::stop() {
  state_->request_stop();
}

void EventLoop::join() {
  HOLMES_ASSERT(!on_loop_thread(), "an event loop cannot wait for itself");
  if (thread_.joinable()) thread_.join();
}

bool EventLoop::on_loop_thread() const {
  return state_->on_loop_thread();
}

bool EventLoop::run_until(const std::function<bool()>& done, Duration limit) {
  HOLMES_ASSERT(!thread_.joinable(), "run_until is for a loop without a thread");
  return state_->run_until(done, limit);
}

void EventLoop::post(Task task) {
  state_->post(std::move(task));
}

Executor::TimerId EventLoop::post_after(Duration delay, Task task) {
  return state_->post_after(delay, std::move(task));
}

void EventLoop::cancel(TimerId timer) {
  state_->cancel(timer);
}

const Clock& EventLoop::clock() const {
  return state_->clock();
}

}  // namespace holmes::transport
