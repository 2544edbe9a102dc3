// Goal: operators run one at a time by priority and report to their home executor.
// Method: a queue executor that a test drains by hand.
#include "holmes/base/compute_queue.hpp"

#include <future>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace holmes {
namespace {

class ManualExecutor final : public Executor {
 public:
  void post(Task task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  TimerId post_after(Duration, Task) override { return 0; }
  void cancel(TimerId) override {}
  const Clock& clock() const override { return clock_; }

  std::size_t drain() {
    std::vector<Task> tasks;
    {
      const std::lock_guard lock(mutex_);
      tasks.swap(tasks_);
    }
    for (auto& task : tasks) task();
    return tasks.size();
  }

 private:
  SteadyClock clock_;
  std::mutex mutex_;
  std::vector<Task> tasks_;
};

TEST(ThreadComputeQueue, RunsByPriorityThenOrder) {
  ManualExecutor home;
  const SteadyClock clock;
  ThreadComputeQueue queue(clock, false);
  std::promise<void> gate;
  std::promise<void> last;
  std::string order;
  queue.submit(
      ComputePriority::kPass, {}, [&] { gate.get_future().wait(); }, home, [] {});
  const auto note = [&](ComputePriority priority, char letter) {
    queue.submit(
        priority, {}, [&order, letter] { order += letter; }, home, [] {});
  };
  note(ComputePriority::kUpdate, 'u');
  note(ComputePriority::kSum, 's');
  note(ComputePriority::kPass, 'p');
  note(ComputePriority::kPass, 'q');
  queue.submit(
      ComputePriority::kUpdate, {}, [&] { last.set_value(); }, home, [] {});
  gate.set_value();
  last.get_future().wait();
  EXPECT_EQ(order, "pqsu");
}

TEST(ThreadComputeQueue, PostsDoneToItsHomeOnly) {
  ManualExecutor home;
  const SteadyClock clock;
  ThreadComputeQueue queue(clock, false);
  bool done = false;
  queue.submit(
      ComputePriority::kPass, {}, [] {}, home, [&done] { done = true; });
  while (home.drain() == 0) std::this_thread::yield();
  EXPECT_TRUE(done);
}

TEST(ThreadComputeQueue, PacedWorkTakesItsModelledTime) {
  ManualExecutor home;
  const SteadyClock clock;
  ThreadComputeQueue queue(clock, true);
  const TimePoint start = clock.now();
  queue.submit(
      ComputePriority::kPass, std::chrono::milliseconds(20), [] {}, home, [] {});
  while (home.drain() == 0) std::this_thread::yield();
  EXPECT_GE(clock.now() - start, std::chrono::milliseconds(20));
}

}  // namespace
}  // namespace holmes
