#pragma once

// A device's one compute thread: operators run on it one at a time, by priority, first come first
// served within one. Blocking compute runs here and nowhere else. In simulation an implementation
// runs the work inline and reports its end at now + the modelled time.

#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "holmes/base/executor.hpp"

namespace holmes {

enum class ComputePriority : std::uint8_t { kPass, kSum, kUpdate };  ///< Highest first.

class ComputeQueue {
 public:
  virtual ~ComputeQueue() = default;
  /// From any thread. Runs `work` on the compute thread, then posts `done` to `home`. `modelled`
  /// is the time that the cost model gives the operator; real devices ignore it, paced and
  /// simulated ones take it.
  virtual void submit(ComputePriority priority, Duration modelled, Task work, Executor& home,
                      Task done) = 0;
};

/// Runs work on a thread of its own. With `paced`, an operator ends no earlier than its modelled
/// time after its beginning: when the one before it was to end, or when it was submitted, whichever
/// is later. So what a machine wakes up late does not add up. The destructor drops work that has
/// not begun and joins the thread.
class ThreadComputeQueue final : public ComputeQueue {
 public:
  /// `prepare` runs first on the new thread (to pin it, or to set a library's thread count).
  ThreadComputeQueue(const Clock& clock, bool paced, Task prepare = {});
  ~ThreadComputeQueue() override;
  void submit(ComputePriority priority, Duration modelled, Task work, Executor& home,
              Task done) override;

 private:
  struct Job {
    TimePoint submitted;
    Duration modelled;
    Task work;
    Executor* home;
    Task done;
  };
  static constexpr std::size_t kPriorityCount = 3;

  void run(const Task& prepare);
  bool pop(Job& job);

  const Clock& clock_;
  const bool paced_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::array<std::deque<Job>, kPriorityCount> jobs_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace holmes
