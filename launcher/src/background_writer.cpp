#include "background_writer.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "console.hpp"

namespace holmes::launcher {

struct BackgroundWriter::State {
  struct Text {
    int descriptor;
    std::string text;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Text> waiting;  ///< The first one is being written.
  std::size_t bytes = 0;
  std::uint64_t dropped = 0;
  bool ended = false;
};

BackgroundWriter::BackgroundWriter(Bounds bounds)
    : bounds_(bounds), state_(std::make_shared<State>()) {
  // Detached, with a share of the state: it may be stuck in a write for ever.
  std::thread([state = state_] { run(*state); }).detach();
}

BackgroundWriter::~BackgroundWriter() {
  const std::lock_guard lock(state_->mutex);
  state_->ended = true;
  state_->changed.notify_all();
}

void BackgroundWriter::write(int descriptor, std::string text, bool droppable) {
  const std::lock_guard lock(state_->mutex);
  const std::size_t bound = droppable ? bounds_.droppable_bytes : bounds_.bytes;
  if (state_->bytes + text.size() > bound) {
    ++state_->dropped;
    return;
  }
  state_->bytes += text.size();
  state_->waiting.push_back({descriptor, std::move(text)});
  state_->changed.notify_all();
}

bool BackgroundWriter::flush(std::chrono::milliseconds deadline) {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, deadline, [this] { return state_->waiting.empty(); });
}

std::uint64_t BackgroundWriter::dropped() const {
  const std::lock_guard lock(state_->mutex);
  return state_->dropped;
}

void BackgroundWriter::run(State& state) {
  std::unique_lock lock(state.mutex);
  for (;;) {
    // The deadline is no event, only the longest sleep.
    state.changed.wait_for(lock, std::chrono::minutes(1),
                           [&state] { return state.ended || !state.waiting.empty(); });
    if (state.ended) return;
    if (state.waiting.empty()) continue;
    const auto& first = state.waiting.front();  // a deque's elements stay where they are
    lock.unlock();
    write_all(first.descriptor, first.text);
    lock.lock();
    state.bytes -= first.text.size();
    state.waiting.pop_front();
    state.changed.notify_all();
  }
}

}  // namespace holmes::launcher
