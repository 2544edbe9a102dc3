#pragma once

// What must hold while oneDNN computes: one thread, and no signal handler on this stack. Kernels of
// oneDNN 2.6's sgemm use the stack pointer as an ordinary register for a while: a handler that ran
// then would write its frame into somebody's memory.

#include <csignal>

namespace holmes::model::cpu {

/// Makes oneDNN use one thread on this thread, if it does not already.
void use_one_thread();

/// One thread from here on; asynchronous signals wait until the end of the scope.
class ComputeScope {
 public:
  ComputeScope();
  ~ComputeScope();
  ComputeScope(const ComputeScope&) = delete;
  ComputeScope& operator=(const ComputeScope&) = delete;

 private:
  sigset_t before_;
};

}  // namespace holmes::model::cpu
