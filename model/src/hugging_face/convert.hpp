#pragma once

// fp32 to and from the half-precision formats, element by element. Pure functions.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "holmes/model/safetensors.hpp"

namespace holmes::model {

float from_f16(std::uint16_t bits);
float from_bf16(std::uint16_t bits);
/// Round to nearest, ties to even; beyond the largest number: infinity.
std::uint16_t to_f16(float value);
std::uint16_t to_bf16(float value);

/// Elements [first, first + out.size()) of a tensor's bytes; kF32, kF16 or kBF16.
void widen(Dtype dtype, std::span<const std::byte> bytes, std::size_t first, std::span<float> out);
/// The bytes of `values` in that dtype. False when a finite value became infinite.
bool narrow(Dtype dtype, std::span<const float> values, std::vector<std::byte>& out);

}  // namespace holmes::model
