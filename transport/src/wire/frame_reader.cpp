#include "wire/frame_reader.hpp"

#include <algorithm>

namespace holmes::transport::wire {

FrameReader::FrameReader(FrameSink& sink, std::size_t read_ahead)
    : sink_(sink), buffer_(std::max(read_ahead, kHeaderBytesMax)) {
  exact_ = read_ahead == 0;
}

std::span<std::byte> FrameReader::space() {
  direct_ = payload_left_ > 0;
  if (direct_) {
    const auto space = sink_.payload_space();
    HOLMES_ASSERT(!space.empty(), "a sink that takes no payload");
    return space.first(std::min(space.size(), payload_left_));
  }
  const std::span<std::byte> buffer(buffer_);
  return exact_ ? buffer.first(decoder_.needed()) : buffer;
}

Status FrameReader::filled(std::size_t bytes) {
  if (!direct_) return parse(std::span<const std::byte>(buffer_).first(bytes));
  payload_left_ -= bytes;
  return sink_.on_payload(bytes);
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
    const auto accepted = sink_.on_head(head);
    decoder_.next();
    if (!accepted) return accepted;
  }
  return {};
}

}  // namespace holmes::transport::wire
