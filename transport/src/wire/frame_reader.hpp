#pragma once

// FrameReader turns a stream of bytes into frames: heads go to the sink's on_head, payload bytes
// straight into the memory that the sink names. With `read_ahead` it asks for more than the next
// head, which saves system calls for small frames and costs a copy of the payload's beginning.

#include <vector>

#include "wire/frame_decoder.hpp"

namespace holmes::transport::wire {

class FrameSink {
 public:
  virtual ~FrameSink() = default;
  /// An error stops the reader.
  virtual Status on_head(const FrameHead& head) = 0;
  /// Where the next bytes of the payload go: not empty. Asked anew for every piece.
  virtual std::span<std::byte> payload_space() = 0;
  virtual Status on_payload(std::size_t bytes) = 0;
};

class FrameReader {
 public:
  /// Without `read_ahead` payloads are not copied: it asks for a payload and the next head at once,
  /// of which it knows the size once it has seen one. (A shorter head lets some bytes slip in.)
  /// After a small frame it reads ahead all the same: the next one is probably small, too.
  FrameReader(FrameSink& sink, std::size_t read_ahead);

  /// The next bytes go into memory of its own, which nothing but filled() changes.
  bool between_frames() const { return payload_left_ == 0; }

  /// Two places, one after the other.
  struct Space {
    std::span<std::byte> first;
    std::span<std::byte> second;
  };
  /// Where to put the next bytes of the stream: `first` is not empty, `second` may be. Valid until
  /// filled() or an event that changes what the sink wants.
  Space space();
  /// `bytes` of space() were filled.
  Status filled(std::size_t bytes);

 private:
  Status parse(std::span<const std::byte> bytes);

  FrameSink& sink_;
  FrameDecoder decoder_;
  std::size_t payload_left_ = 0;
  std::size_t head_bytes_ = kPrefixBytes;  // of the last head
  bool exact_ = false;                     // asks for heads exactly
  bool small_ = false;                     // the last frame was
  std::size_t direct_ = 0;                 // bytes of the last space() that are the sink's
  std::vector<std::byte> buffer_;
};

}  // namespace holmes::transport::wire
