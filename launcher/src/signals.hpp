#pragma once

// SIGINT, SIGTERM and SIGHUP as calls of a function on a thread of its own. block_stop_signals()
// must come before the first thread of the process, so that no other thread takes them.

#include <functional>
#include <thread>

#include "run_folder.hpp"

namespace holmes::launcher {

/// A write to a pipe that is closed, or beyond the limit on file sizes, is an error that the writer
/// reports, not the end of the process. Children inherit it.
void ignore_write_signals();

/// Holds the stop signals back until a SignalWatcher takes them; those that are ignored stay so.
void block_stop_signals();

/// From here on a stop signal ends the process: for the work after a job.
void release_stop_signals();

class SignalWatcher {
 public:
  /// Calls `on_signal` with the number of times a stop signal came: 1, 2, ...
  explicit SignalWatcher(std::function<void(int count)> on_signal);
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;

 private:
  void run();

  const std::function<void(int)> on_signal_;
  const Descriptor signals_;
  const Descriptor stop_;
  std::thread thread_;
};

}  // namespace holmes::launcher
