#pragma once

// Where what stands in an .idx file: see indexed.hpp.

#include <cstdint>
#include <string_view>

namespace holmes::model {

constexpr std::string_view kIndexMagic{"MMIDIDX\0\0", 9};
constexpr std::uint64_t kIndexVersion = 1;
constexpr std::uint64_t kIndexTypeAt = kIndexMagic.size() + 8;
constexpr std::uint64_t kIndexHeaderBytes = kIndexTypeAt + 1 + 8 + 8;
/// Ids below this fit 16 bits, with room for what Megatron adds.
constexpr std::uint32_t kVocabularyOf16Bits = 65500;

}  // namespace holmes::model
