#pragma once

// The randomness seam: a generator that gives the same numbers on every machine for one seed.
// Passed in wherever chance is needed; std::random_device and distributions of the standard library
// (whose results differ between implementations) are not used.

#include <array>
#include <bit>
#include <cstdint>

namespace holmes {

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection that scatters bits.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// xoshiro256** (Blackman, Vigna 2018), seeded through SplitMix64. One owner, one thread.
class Random {
 public:
  using result_type = std::uint64_t;

  explicit constexpr Random(std::uint64_t seed) {
    for (auto& word : state_) word = mix64(seed++ * 0x632be59bd9b4e019ULL);
  }

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }

  constexpr result_type operator()() {
    const auto result = std::rotl(state_[1] * 5, 7) * 9;
    const auto t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// Uniform in [0, bound), without bias; bound > 0.
  constexpr std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t limit = max() - max() % bound;
    std::uint64_t x = (*this)();
    while (x >= limit) x = (*this)();
    return x % bound;
  }

  /// Uniform in [0, 1), with 53 random bits.
  constexpr double uniform() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }

  /// True with probability p.
  constexpr bool chance(double p) { return uniform() < p; }

 private:
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace holmes
