#pragma once

// Part of variant.cpp: vectors of 16 floats. The compiler makes one AVX-512, two AVX or four SSE
// instructions of each operation; sums run over the same 16 lanes on all of them.

#include <cstddef>
#include <cstdint>

#define HOLMES_INLINE inline __attribute__((always_inline))

namespace holmes::model::kernels {
namespace {

constexpr std::size_t kLanes = 16;
typedef float Lanes __attribute__((vector_size(4 * kLanes)));
typedef std::int32_t IntLanes __attribute__((vector_size(4 * kLanes)));

/// `count` floats from `from`, zeros behind them.
HOLMES_INLINE Lanes load(const float* from, std::size_t count = kLanes) {
  Lanes value = {};
  __builtin_memcpy(&value, from, count * sizeof(float));
  return value;
}
HOLMES_INLINE void store(float* to, Lanes value, std::size_t count = kLanes) {
  __builtin_memcpy(to, &value, count * sizeof(float));
}
HOLMES_INLINE Lanes all(float value) {
  return Lanes{} + value;
}
// Comparisons are made piece by piece, since GCC takes wider ones than the processor has apart into
// single floats.
#if defined(__AVX512F__)
constexpr std::size_t kNativeLanes = 16;
#elif defined(__AVX__)
constexpr std::size_t kNativeLanes = 8;
#else
constexpr std::size_t kNativeLanes = 4;
#endif
typedef float Native __attribute__((vector_size(4 * kNativeLanes)));
struct Pieces {
  Native of[kLanes / kNativeLanes];
};

HOLMES_INLINE Lanes larger(Lanes a, Lanes b) {
  auto x = __builtin_bit_cast(Pieces, a);
  const auto y = __builtin_bit_cast(Pieces, b);
#pragma GCC unroll 4
  for (std::size_t i = 0; i < kLanes / kNativeLanes; ++i)
    x.of[i] = x.of[i] > y.of[i] ? x.of[i] : y.of[i];
  return __builtin_bit_cast(Lanes, x);
}
HOLMES_INLINE Lanes smaller(Lanes a, Lanes b) {
  return -larger(-a, -b);
}

HOLMES_INLINE float sum(Lanes value) {
  float lanes[kLanes];
  store(lanes, value);
  for (std::size_t width = kLanes / 2; width > 0; width /= 2)
    for (std::size_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  return lanes[0];
}

/// Calls body(i, n) for the n elements from i, n being kLanes but for the last time. Inlined twice,
/// so that whole vectors know their size.
template <class Body>
HOLMES_INLINE void each_lanes(std::size_t count, const Body& body) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) body(i, kLanes);
  if (i < count) body(i, count - i);
}

/// e^x to about 1e-7 relative; x is held to [-87, 88], so that the result is a normal number.
HOLMES_INLINE Lanes exponential(Lanes x) {
  constexpr float kLog2E = 0x1.715476p+0F;
  constexpr float kLn2High = 0x1.62e4p-1F;    // 15 bits: its product with n is exact.
  constexpr float kLn2Low = 0x1.7f7d1cp-20F;  // ln 2 - kLn2High
  constexpr float kRound = 0x1.8p+23F;        // Adding and subtracting it rounds to integers.
  x = smaller(larger(x, all(-87.0F)), all(88.0F));
  const Lanes n = (x * kLog2E + kRound) - kRound;
  const Lanes r = (x - n * kLn2High) - n * kLn2Low;
  // Taylor's polynomial: |r| is at most ln(2)/2, where the eighth term is below 1e-8.
  Lanes p = all(1.0F / 5040);
  p = p * r + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const IntLanes bits = (__builtin_convertvector(n, IntLanes) + 127) << 23;
  return p * __builtin_bit_cast(Lanes, bits);
}

}  // namespace
}  // namespace holmes::model::kernels
