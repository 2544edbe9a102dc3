#include "checkpoint/dtype.hpp"

#include <array>

namespace holmes::model {
namespace {

struct DtypeFacts {
  Dtype dtype;
  std::string_view name;
  std::uint32_t bytes;
};

constexpr std::array<DtypeFacts, 15> kDtypes{{
    {Dtype::kBool, "BOOL", 1},
    {Dtype::kU8, "U8", 1},
    {Dtype::kI8, "I8", 1},
    {Dtype::kF8E5M2, "F8_E5M2", 1},
    {Dtype::kF8E4M3, "F8_E4M3", 1},
    {Dtype::kU16, "U16", 2},
    {Dtype::kI16, "I16", 2},
    {Dtype::kF16, "F16", 2},
    {Dtype::kBF16, "BF16", 2},
    {Dtype::kU32, "U32", 4},
    {Dtype::kI32, "I32", 4},
    {Dtype::kF32, "F32", 4},
    {Dtype::kU64, "U64", 8},
    {Dtype::kI64, "I64", 8},
    {Dtype::kF64, "F64", 8},
}};

const DtypeFacts& facts(Dtype dtype) {
  return kDtypes.at(static_cast<std::size_t>(dtype));
}

}  // namespace

std::string_view to_string(Dtype dtype) {
  return facts(dtype).name;
}

std::uint32_t element_bytes(Dtype dtype) {
  return facts(dtype).bytes;
}

std::optional<Dtype> parse_dtype(std::string_view text) {
  for (const auto& known : kDtypes) {
    if (known.name == text) return known.dtype;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> tensor_bytes(Dtype dtype, std::span<const std::uint64_t> shape) {
  std::uint64_t bytes = element_bytes(dtype);
  for (const std::uint64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  }
  return bytes;
}

}  // namespace holmes::model
