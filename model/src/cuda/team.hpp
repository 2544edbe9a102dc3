#pragma once

// How kernels are written: once, for a team of threads, as phases between barriers. GpuTeam
// (gpu_team.cuh) runs a phase on the threads of a CUDA block, HostTeam as a loop over them, so that
// the source that a GPU runs is tested where there is none. (CUDA's word is "block"; here that is a
// part of a transformer.)
//
// A kernel is a struct of arguments with
//   kThreads             threads of a team, at most kThreadsMax;
//   teams()              how many teams there are, in up to three directions;
//   shared_bytes()       memory that the threads of a team share, not initialised;
//   run(team)            what a team does.
// In run(), team.each(phase) calls phase(thread) for all threads and ends with a barrier;
// Team::Local<T> is a T for each thread that lives through several phases; what stands outside of
// phases must be the same for all threads. Sums are taken in an order that depends on sizes alone:
// no atomics.

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define HOLMES_ON_TEAM __device__
#define HOLMES_UNROLLED _Pragma("unroll")  ///< Before a loop over registers, which have no index.
#else
#define HOLMES_ON_TEAM
#define HOLMES_UNROLLED
#endif

namespace holmes::model::cuda {

constexpr int kThreadsMax = 256;

struct Teams {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
};

constexpr std::uint32_t groups_of(std::size_t count, std::size_t size) {
  return static_cast<std::uint32_t>((count + size - 1) / size);
}

/// Element-wise kernels: each team takes kElements elements.
constexpr std::size_t kElements = 1024;

template <int kThreads, class Team, class Body>
HOLMES_ON_TEAM void each_element(Team& team, std::size_t count, const Body& body) {
  const std::size_t begin = team.x() * kElements;
  const std::size_t end = begin + kElements < count ? begin + kElements : count;
  team.each([&](int thread) {
    for (std::size_t i = begin + static_cast<std::size_t>(thread); i < end; i += kThreads) body(i);
  });
}

/// Folds one value of each thread into one that all get. `fold` is applied along a tree, so that
/// the order of operations is the same whatever runs when. Shared: kThreads values.
template <int kThreads, class T, class Team, class Value, class Fold>
HOLMES_ON_TEAM T team_fold(Team& team, T* shared, const Value& value, const Fold& fold) {
  team.each([&](int thread) { shared[thread] = value(thread); });
  for (int width = kThreads / 2; width > 0; width /= 2)
    team.each([&](int thread) {
      if (thread < width) shared[thread] = fold(shared[thread], shared[thread + width]);
    });
  const T result = shared[0];
  team.barrier();  // before anybody writes there again
  return result;
}

template <int kThreads, class T, class Team, class Value>
HOLMES_ON_TEAM T team_sum(Team& team, T* shared, const Value& value) {
  return team_fold<kThreads>(team, shared, value, [](T a, T b) { return a + b; });
}

}  // namespace holmes::model::cuda
