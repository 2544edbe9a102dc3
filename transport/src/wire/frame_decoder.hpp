#pragma once

// FrameDecoder takes bytes as they come and yields frame heads (prefix and header). It never reads
// past a head, so the payload that follows can go straight to its buffer. Its memory is fixed:
// nothing that a peer sends makes it allocate. After an error it stays in error.

#include <array>
#include <optional>
#include <span>

#include "wire/frame.hpp"

namespace holmes::transport::wire {

struct FrameHead {
  FrameType type = FrameType::kHello;
  std::uint32_t payload_bytes = 0;
  std::span<const std::byte> header;  ///< Aligned to 8; valid until next().
};

class FrameDecoder {
 public:
  /// Bytes that are missing from the part (prefix or header) being read; 0 once a head is ready.
  std::size_t needed() const;

  /// Takes bytes from the front of `bytes`, never beyond the head's end; returns how many it took.
  Result<std::size_t> consume(std::span<const std::byte> bytes);

  /// Nothing of the next head has come.
  bool fresh() const { return state_ == State::kPrefix && filled_ == 0; }
  bool ready() const { return state_ == State::kReady; }
  FrameHead head() const;
  /// The head was used, and its payload read elsewhere: begins the next frame.
  void next();

 private:
  enum class State { kPrefix, kHeader, kReady, kFailed };

  Status advance();

  State state_ = State::kPrefix;
  std::size_t filled_ = 0;  // bytes of the current part
  Prefix prefix_;
  std::optional<Error> error_;
  std::array<std::byte, kPrefixBytes> prefix_bytes_{};
  alignas(8) std::array<std::byte, kHeaderBytesMax> header_bytes_{};
};

}  // namespace holmes::transport::wire
