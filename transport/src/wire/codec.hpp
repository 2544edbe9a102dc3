#pragma once

// The headers of frames as plain values, and their encoding. Everything decoded is checked here:
// a value that decode() returns is within all limits. Nothing throws.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holmes/base/ids.hpp"
#include "holmes/base/result.hpp"
#include "holmes/transport/message.hpp"
#include "wire/frame.hpp"

namespace holmes::transport::wire {

constexpr std::size_t kJobBytesMax = 200;
constexpr std::size_t kHostNameBytesMax = 64;
constexpr std::size_t kReasonBytesMax = 1000;
constexpr std::size_t kDimensionsMax = 8;
constexpr std::size_t kLanesMax = 16;

/// Hash of the schema file that this program was built with.
std::uint64_t schema_hash();

/// XXH3-64.
std::uint64_t checksum(std::span<const std::byte> bytes);

enum class Purpose : std::uint8_t { kControl, kBulk };

struct Hello {
  std::uint64_t schema_hash = 0;
  std::string job;
  HostId host;
  NicId nic;
  Epoch epoch;
  Purpose purpose = Purpose::kControl;
  std::uint64_t link_nonce = 0;
  std::uint8_t lane = 0;   ///< Of a bulk socket: which one of the link's.
  std::uint8_t lanes = 1;  ///< Bulk sockets of the link.
  std::string host_name = {};
};

struct Refusal {
  ErrorCode code = ErrorCode::kRefused;
  std::string reason;  ///< Cut at kReasonBytesMax when encoded.
};

struct Control {
  std::uint64_t checksum = 0;
};

struct Credit {
  BulkTag tag;
  std::uint64_t bytes = 0;
  /// Not 0: no buffer was reserved; so many payloads that went early, of `bytes` together, were
  /// taken. The tag means nothing then.
  std::uint32_t taken = 0;
};

struct Chunk {
  BulkTag tag;
  TensorShape shape;
  std::uint64_t offset = 0;
  std::uint64_t total = 0;
  std::optional<std::uint64_t> checksum;
};

/// Prefix and header of a frame, ready to be written before `payload_bytes` of payload.
using EncodedHead = std::vector<std::byte>;

EncodedHead encode(const Hello& hello);
EncodedHead encode(const Refusal& refusal);
// Heads that come all the time are encoded into the memory of `reuse`.
EncodedHead encode(const Control& control, std::size_t payload_bytes, EncodedHead reuse = {});
EncodedHead encode(const Credit& credit, EncodedHead reuse = {});
EncodedHead encode(const Chunk& chunk, std::size_t payload_bytes, EncodedHead reuse = {});
/// The same with another checksum than the chunk's own.
EncodedHead encode(const Chunk& chunk, std::optional<std::uint64_t> checksum,
                   std::size_t payload_bytes, EncodedHead reuse);

Result<Hello> decode_hello(std::span<const std::byte> header);
Result<Refusal> decode_refusal(std::span<const std::byte> header);
Result<Control> decode_control(std::span<const std::byte> header);
Result<Credit> decode_credit(std::span<const std::byte> header);
Result<Chunk> decode_chunk(std::span<const std::byte> header, std::size_t payload_bytes);

}  // namespace holmes::transport::wire
