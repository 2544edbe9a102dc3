#pragma once

// The outermost layout of everything on a socket: a fixed prefix, a Cap'n Proto header, a payload.
// The prefix keeps its layout for all protocol versions, so that a refusal is always readable.
//
//   offset  size  field (little-endian)
//        0     4  magic "HLMS"
//        4     2  protocol version
//        6     1  frame type
//        7     1  zero
//        8     4  header bytes
//       12     4  payload bytes
//       16     4  CRC-32C of the 16 bytes above and the header

#include <array>
#include <cstdint>
#include <span>

#include "holmes/base/limits.hpp"
#include "holmes/base/result.hpp"

namespace holmes::transport::wire {

constexpr std::uint16_t kProtocolVersion = 2;
constexpr std::size_t kPrefixBytes = 20;
constexpr std::size_t kHeaderBytesMax = limits::kBulkHeaderBytesMax;

enum class FrameType : std::uint8_t { kHello, kRefusal, kControl, kCredit, kChunk };

struct Prefix {
  std::uint16_t version = kProtocolVersion;
  FrameType type = FrameType::kHello;
  std::uint32_t header_bytes = 0;
  std::uint32_t payload_bytes = 0;
};

/// The largest payload that a frame of this type may have.
constexpr std::size_t payload_bytes_max(FrameType type) {
  if (type == FrameType::kControl) return limits::kControlBytesMax;
  return type == FrameType::kChunk ? limits::kChunkBytesMax : 0;
}

/// CRC-32C (Castagnoli) of `bytes`, continuing from `crc`.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0);

/// Writes the prefix for `header` into `out`.
void encode_prefix(const Prefix& prefix, std::span<const std::byte> header,
                   std::span<std::byte, kPrefixBytes> out);

/// Reads and checks all of a prefix but its CRC. kRefused: another protocol version; kCorrupt: no
/// frame of ours.
Result<Prefix> decode_prefix(std::span<const std::byte, kPrefixBytes> bytes);

/// Whether the CRC in `prefix` is right for it and `header`.
bool crc_matches(std::span<const std::byte, kPrefixBytes> prefix,
                 std::span<const std::byte> header);

}  // namespace holmes::transport::wire
