#include "holmes/base/compute_queue.hpp"

#include <algorithm>

#include "holmes/base/assert.hpp"

namespace holmes {

ThreadComputeQueue::ThreadComputeQueue(const Clock& clock, bool paced, Task prepare)
    : clock_(clock),
      paced_(paced),
      thread_([this, prepare = std::move(prepare)] { run(prepare); }) {}

ThreadComputeQueue::~ThreadComputeQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void ThreadComputeQueue::submit(ComputePriority priority, Duration modelled, Task work,
                                Executor& home, Task done) {
  const auto queue = static_cast<std::size_t>(priority);
  HOLMES_ASSERT(queue < kPriorityCount, "unknown compute priority");
  {
    const std::lock_guard lock(mutex_);
    jobs_[queue].push_back({clock_.now(), modelled, std::move(work), &home, std::move(done)});
  }
  wake_.notify_one();
}

bool ThreadComputeQueue::pop(Job& job) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stopping_) return false;
    for (auto& queue : jobs_) {
      if (queue.empty()) continue;
      job = std::move(queue.front());
      queue.pop_front();
      return true;
    }
    wake_.wait(lock);
  }
}

void ThreadComputeQueue::run(const Task& prepare) {
  if (prepare) prepare();
  TimePoint modelled_end{};
  for (Job job; pop(job);) {
    modelled_end = std::max(modelled_end, job.submitted) + job.modelled;
    job.work();
    job.work = {};  // what it held is free before anybody hears that it is done
    if (paced_)
      if (const Duration rest = modelled_end - clock_.now(); rest > Duration::zero())
        std::this_thread::sleep_for(rest);
    job.home->post(std::move(job.done));
  }
}

}  // namespace holmes
