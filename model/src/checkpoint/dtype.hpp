#pragma once

// What reader and writer of safetensors files must agree on.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "holmes/model/safetensors.hpp"

namespace holmes::model {

constexpr std::size_t kLengthBytes = 8;
/// What other readers of the format accept, too.
constexpr std::uint64_t kHeaderBytesMax = 100'000'000;
constexpr const char* kMetadataKey = "__metadata__";

std::optional<Dtype> parse_dtype(std::string_view text);

/// Bytes of a tensor, unless their number does not fit 64 bits.
std::optional<std::uint64_t> tensor_bytes(Dtype dtype, std::span<const std::uint64_t> shape);

}  // namespace holmes::model
