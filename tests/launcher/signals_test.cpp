// Goal: stop signals that the parent ignored stay ignored. Method: the mask of this thread after
// blocking, with one signal ignored.
#include "signals.hpp"

#include <csignal>

#include <gtest/gtest.h>
#include <pthread.h>

namespace holmes::launcher {
namespace {

TEST(Signals, ThoseThatWereIgnoredAreLeftAlone) {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  block_stop_signals();
  sigset_t blocked;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  EXPECT_EQ(::sigismember(&blocked, SIGHUP), 0);
  EXPECT_EQ(::sigismember(&blocked, SIGTERM), 1);
  release_stop_signals();
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  EXPECT_EQ(::sigismember(&blocked, SIGTERM), 0);
  std::signal(SIGHUP, before);
}

}  // namespace
}  // namespace holmes::launcher
