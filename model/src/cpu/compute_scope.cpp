#include "cpu/compute_scope.hpp"

#include "holmes/base/assert.hpp"
#include "holmes/model/gpt.hpp"

// oneDNN's thread count is that of GCC's OpenMP for the calling thread. Declared here, since omp.h
// belongs to the compiler and clang brings none that fits GCC's library.
extern "C" void omp_set_num_threads(int count);
extern "C" int omp_get_max_threads();

namespace holmes::model {
namespace cpu {
namespace {

/// All signals but those that a fault of this very thread raises.
sigset_t asynchronous_signals() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
    sigdelset(&signals, fault);
  return signals;
}

}  // namespace

void use_one_thread() {
  if (omp_get_max_threads() != 1) omp_set_num_threads(1);
}

ComputeScope::ComputeScope() {
  use_one_thread();
  const sigset_t signals = asynchronous_signals();
  HOLMES_ASSERT(pthread_sigmask(SIG_BLOCK, &signals, &before_) == 0, "signals cannot be blocked");
}

ComputeScope::~ComputeScope() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace cpu

void prepare_compute_thread() {
  cpu::use_one_thread();
}

}  // namespace holmes::model
