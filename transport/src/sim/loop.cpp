#include "holmes/base/assert.hpp"
#include "holmes/transport/sim.hpp"

namespace holmes::transport {

class SimLoop::Strand final : public Executor {
 public:
  Strand(SimLoop& loop, std::uint64_t number) : loop_(loop), number_(number) {}

  void post(Task task) override { loop_.post_to(*this, std::move(task)); }
  TimerId post_after(Duration delay, Task task) override {
    return loop_.post_after_to(*this, delay, std::move(task));
  }
  void cancel(TimerId timer) override { loop_.cancel(timer); }
  const Clock& clock() const override { return loop_; }

 private:
  friend class SimLoop;

  SimLoop& loop_;
  const std::uint64_t number_;
  bool retired_ = false;
  std::deque<Task> ready_;
};

SimLoop::SimLoop(std::uint64_t seed) : random_(seed), trace_(mix64(seed)) {
  strands_.push_back(std::make_unique<Strand>(*this, 0));
}

SimLoop::~SimLoop() {
  // Tasks may own objects that post or cancel when they go.
  for (auto& strand : strands_) strand->retired_ = true;
  for (auto& strand : strands_) std::exchange(strand->ready_, {}).clear();
  std::exchange(timers_, {}).clear();
}

Executor& SimLoop::make_strand() {
  strands_.push_back(std::make_unique<Strand>(*this, strands_.size()));
  return *strands_.back();
}

void SimLoop::retire(Executor& executor) {
  HOLMES_ASSERT(&executor != this, "the loop's own strand cannot be retired");
  auto& strand = static_cast<Strand&>(executor);
  strand.retired_ = true;
  ready_count_ -= strand.ready_.size();
  std::vector<Task> dropped;  // destroyed last: they may post and cancel
  for (auto& task : std::exchange(strand.ready_, {})) dropped.push_back(std::move(task));
  for (auto it = timers_.begin(); it != timers_.end();) {
    if (it->second.strand != &strand) {
      ++it;
      continue;
    }
    dropped.push_back(std::move(it->second.task));
    due_.erase(it->first.second);
    it = timers_.erase(it);
  }
}

bool SimLoop::run_ready_one() {
  if (ready_count_ == 0) return false;
  std::vector<Strand*> candidates;
  for (const auto& strand : strands_)
    if (!strand->ready_.empty()) candidates.push_back(strand.get());
  HOLMES_ASSERT(!candidates.empty(), "ready tasks were miscounted");
  auto& strand = *candidates[candidates.size() == 1 ? 0 : random_.below(candidates.size())];
  const auto task = std::move(strand.ready_.front());
  strand.ready_.pop_front();
  --ready_count_;
  note(static_cast<std::uint64_t>(now_.time_since_epoch().count()) * 1021 + strand.number_);
  task();
  return true;
}

std::optional<TimePoint> SimLoop::next_event() const {
  if (timers_.empty()) return {};
  return timers_.begin()->first.first;
}

bool SimLoop::advance_to_next_event() {
  HOLMES_ASSERT(!has_ready(), "time passes while tasks are ready");
  if (timers_.empty()) return false;
  now_ = std::max(now_, timers_.begin()->first.first);
  while (!timers_.empty() && timers_.begin()->first.first <= now_) {
    auto node = timers_.extract(timers_.begin());
    due_.erase(node.key().second);
    post_to(*node.mapped().strand, std::move(node.mapped().task));
  }
  return true;
}

void SimLoop::advance_to(TimePoint time) {
  HOLMES_ASSERT(time >= now_ && (timers_.empty() || time <= timers_.begin()->first.first),
                "the clock would jump over an event");
  now_ = time;
}

bool SimLoop::run_until(const std::function<bool()>& done, Duration limit) {
  const auto deadline = now_ + limit;
  while (!done()) {
    if (run_ready_one()) continue;
    const auto next = next_event();
    if (!next || *next > deadline) return false;
    advance_to_next_event();
  }
  return true;
}

void SimLoop::post_to(Strand& strand, Task task) {
  if (strand.retired_) return;
  strand.ready_.push_back(std::move(task));
  ++ready_count_;
}

Executor::TimerId SimLoop::post_after_to(Strand& strand, Duration delay, Task task) {
  const auto id = next_timer_++;
  if (strand.retired_) return id;
  const auto due = now_ + std::max(delay, Duration::zero());
  timers_.emplace(std::pair(due, id), Timer{&strand, std::move(task)});
  due_.emplace(id, due);
  return id;
}

void SimLoop::post(Task task) {
  post_to(*strands_.front(), std::move(task));
}

Executor::TimerId SimLoop::post_after(Duration delay, Task task) {
  return post_after_to(*strands_.front(), delay, std::move(task));
}

void SimLoop::cancel(TimerId timer) {
  const auto found = due_.find(timer);
  if (found == due_.end()) return;
  const auto node = timers_.extract({found->second, timer});  // its task goes last
  due_.erase(found);
}

}  // namespace holmes::transport
