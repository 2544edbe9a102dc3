#pragma once

// The executor seam: where callbacks and timers run. In production an event loop's thread, in
// simulation one queue in virtual time. Tasks of one executor run one at a time, in the order in
// which they were posted; a posted task never runs inside the call that posts it.

#include <cstdint>
#include <functional>

#include "holmes/base/clock.hpp"

namespace holmes {

using Task = std::function<void()>;

class Executor {
 public:
  using TimerId = std::uint64_t;

  virtual ~Executor() = default;
  /// From any thread.
  virtual void post(Task task) = 0;
  /// From any thread. Runs `task` once `delay` has passed, unless it is cancelled before.
  virtual TimerId post_after(Duration delay, Task task) = 0;
  /// From a task of this executor: the timer will not fire. Unknown and fired ids are ignored.
  virtual void cancel(TimerId timer) = 0;
  virtual const Clock& clock() const = 0;
};

}  // namespace holmes
