#include "wire/frame_reader.hpp"

#include <algorithm>

namespace holmes::transport::wire {

namespace {

/// Frames of at most this size are copied rather than asked for twice.
constexpr std::size_t kSmallBytes = 16 * kKiB;

}  // namespace

FrameReader::FrameReader(FrameSink& sink, std::size_t read_ahead)
    : sink_(sink), buffer_(std::max(read_ahead, kPrefixBytes + kHeaderBytesMax + kSmallBytes)) {
  exact_ = read_ahead == 0;
}

FrameReader::Space FrameReader::space() {
  direct_ = 0;
  const std::span<std::byte> buffer(buffer_);
  if (payload_left_ == 0) {
    if (!exact_ || (small_ && decoder_.fresh())) return {buffer, {}};
    return {buffer.first(decoder_.fresh() ? head_bytes_ : decoder_.needed()), {}};
  }
  auto space = sink_.payload_space();
  HOLMES_ASSERT(!space.empty(), "a sink that takes no payload");
  space = space.first(std::min(space.size(), payload_left_));
  direct_ = space.size();
  if (!exact_ || direct_ < payload_left_) return {space, {}};
  return {space, buffer.first(head_bytes_)};
}

Status FrameReader::filled(std::size_t bytes) {
  const auto payload = std::min(bytes, direct_);
  if (payload > 0) {
    payload_left_ -= payload;
    HOLMES_TRY(sink_.on_payload(payload));
  }
  return parse(std::span<const std::byte>(buffer_).first(bytes - payload));
}

Status FrameReader::parse(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (payload_left_ > 0) {
      const auto space = sink_.payload_space();
      const auto count = std::min({bytes.size(), space.size(), payload_left_});
      HOLMES_ASSERT(count > 0, "a sink that takes no payload");
      std::copy_n(bytes.begin(), count, space.begin());
      bytes = bytes.subspan(count);
      payload_left_ -= count;
      HOLMES_TRY(sink_.on_payload(count));
      continue;
    }
    HOLMES_TRY_ASSIGN(const auto taken, decoder_.consume(bytes));
    bytes = bytes.subspan(taken);
    if (!decoder_.ready()) continue;
    const auto head = decoder_.head();
    payload_left_ = head.payload_bytes;
    head_bytes_ = kPrefixBytes + head.header.size();
    small_ = payload_left_ <= kSmallBytes;
    const auto accepted = sink_.on_head(head);
    decoder_.next();
    if (!accepted) return accepted;
  }
  return {};
}

}  // namespace holmes::transport::wire
