#include "hugging_face/convert.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "holmes/base/assert.hpp"

namespace holmes::model {
namespace {

constexpr std::uint32_t kSignBit = 0x8000'0000U;
constexpr std::uint32_t kInfinityBits = 0x7f80'0000U;
constexpr std::uint32_t kHalfInfinityBits = 0x7c00U;
constexpr std::uint32_t kHalfQuietNan = 0x7e00U;
constexpr int kHalfShift = 13;  // mantissa bits that fp16 lacks
constexpr int kBfloatShift = 16;
constexpr int kHalfBias = 15;
constexpr int kFloatBias = 127;

/// The bits of a non-negative finite number, less the lowest `shift`, to nearest and ties to even.
std::uint32_t rounded(std::uint32_t bits, int shift) {
  const std::uint32_t below_half = (1U << (shift - 1)) - 1;
  return (bits + below_half + ((bits >> shift) & 1U)) >> shift;
}

}  // namespace

float from_f16(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  float magnitude = 0;
  if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(mantissa), -24);
  } else if (exponent == 0x1f) {
    magnitude =
        std::bit_cast<float>(kInfinityBits | (static_cast<std::uint32_t>(mantissa) << kHalfShift));
  } else {
    magnitude = std::ldexp(static_cast<float>(mantissa + 0x400), exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << kBfloatShift);
}

std::uint16_t to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits & kSignBit) >> 16;
  const std::uint32_t magnitude = bits & ~kSignBit;
  std::uint32_t half = 0;
  if (magnitude > kInfinityBits) {
    half = kHalfQuietNan;
  } else if (const float absolute = std::bit_cast<float>(magnitude); absolute < 0x1p-14F) {
    // Multiples of 2^-24: the sum has exactly these as its last bits, rounded by the addition.
    half = std::bit_cast<std::uint32_t>(absolute + 0.5F) - std::bit_cast<std::uint32_t>(0.5F);
  } else if (absolute >= 0x1p16F) {
    half = kHalfInfinityBits;
  } else {
    // From 65520 on the carry makes it infinity.
    half = rounded(magnitude - ((kFloatBias - kHalfBias) << 23), kHalfShift);
  }
  return static_cast<std::uint16_t>(sign | half);
}

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & ~kSignBit;
  // A quiet NaN stays one even if the bits that are kept are all 0.
  const std::uint32_t kept = magnitude > kInfinityBits ? (magnitude >> kBfloatShift) | 0x40U
                                                       : rounded(magnitude, kBfloatShift);
  return static_cast<std::uint16_t>(((bits & kSignBit) >> kBfloatShift) | kept);
}

void widen(Dtype dtype, std::span<const std::byte> bytes, std::size_t first, std::span<float> out) {
  const std::size_t width = element_bytes(dtype);
  HOLMES_ASSERT((first + out.size()) * width <= bytes.size(), "beyond the tensor");
  const std::byte* const from = bytes.data() + first * width;
  if (dtype == Dtype::kF32) {
    if (!out.empty()) std::memcpy(out.data(), from, out.size_bytes());
    return;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, from + i * width, width);
    out[i] = dtype == Dtype::kF16 ? from_f16(bits) : from_bf16(bits);
  }
}

bool narrow(Dtype dtype, std::span<const float> values, std::vector<std::byte>& out) {
  const std::size_t width = element_bytes(dtype);
  out.resize(values.size() * width);
  if (dtype == Dtype::kF32) {
    if (!values.empty()) std::memcpy(out.data(), values.data(), values.size_bytes());
    return true;
  }
  bool fits = true;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t bits = dtype == Dtype::kF16 ? to_f16(values[i]) : to_bf16(values[i]);
    const float stored = dtype == Dtype::kF16 ? from_f16(bits) : from_bf16(bits);
    fits = fits && (std::isfinite(stored) || !std::isfinite(values[i]));
    std::memcpy(out.data() + i * width, &bits, width);
  }
  return fits;
}

}  // namespace holmes::model
