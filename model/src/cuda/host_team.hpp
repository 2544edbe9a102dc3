#pragma once

// Runs a kernel on the CPU: teams one after another, and in each phase its threads one after
// another, in one of several orders. Results that depend on the order betray a missing barrier.
// Shared memory begins as NaN, which betrays reads of what nobody wrote.

#include <algorithm>
#include <numeric>
#include <vector>

#include "cuda/team.hpp"
#include "holmes/base/assert.hpp"
#include "holmes/base/random.hpp"

namespace holmes::model::cuda {

enum class ThreadOrder : std::uint8_t { kAscending, kDescending, kShuffled };

class HostTeam {
 public:
  template <class T>
  struct Local {
    T& operator[](int thread) { return values[thread]; }
    T values[kThreadsMax];
  };

  HostTeam(int threads, std::size_t shared_bytes, ThreadOrder order)
      : shared_(shared_bytes), order_(static_cast<std::size_t>(threads)) {
    std::iota(order_.begin(), order_.end(), 0);
    if (order == ThreadOrder::kDescending) std::iota(order_.rbegin(), order_.rend(), 0);
    if (order != ThreadOrder::kShuffled) return;
    Random random(7);
    for (std::size_t i = order_.size(); i > 1; --i)
      std::swap(order_[i - 1], order_[random.below(i)]);
  }

  /// To be called before each team's run.
  void begin(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
    x_ = x;
    y_ = y;
    z_ = z;
    std::fill(shared_.begin(), shared_.end(), std::byte{0xff});  // NaN, as float and as double
  }

  std::size_t x() const { return x_; }
  std::size_t y() const { return y_; }
  std::size_t z() const { return z_; }
  template <class T>
  T* shared() {
    return reinterpret_cast<T*>(shared_.data());
  }
  template <class Phase>
  void each(const Phase& phase) {
    for (const int thread : order_) phase(thread);
  }
  void barrier() {}

 private:
  std::vector<std::byte> shared_;
  std::vector<int> order_;
  std::size_t x_ = 0;
  std::size_t y_ = 0;
  std::size_t z_ = 0;
};

template <class Kernel>
void run_on_host(const Kernel& kernel, ThreadOrder order) {
  static_assert(Kernel::kThreads <= kThreadsMax && Kernel::kThreads % 32 == 0);
  const Teams teams = kernel.teams();
  HostTeam team(Kernel::kThreads, kernel.shared_bytes(), order);
  for (std::uint32_t z = 0; z < teams.z; ++z)
    for (std::uint32_t y = 0; y < teams.y; ++y)
      for (std::uint32_t x = 0; x < teams.x; ++x) {
        team.begin(x, y, z);
        kernel.run(team);
      }
}

}  // namespace holmes::model::cuda
