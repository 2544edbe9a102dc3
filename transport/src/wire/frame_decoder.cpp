#include "wire/frame_decoder.hpp"

#include <algorithm>

namespace holmes::transport::wire {

std::size_t FrameDecoder::needed() const {
  switch (state_) {
    case State::kPrefix:
      return kPrefixBytes - filled_;
    case State::kHeader:
      return prefix_.header_bytes - filled_;
    case State::kReady:
    case State::kFailed:
      break;
  }
  return 0;
}

Result<std::size_t> FrameDecoder::consume(std::span<const std::byte> bytes) {
  if (error_) return *error_;
  std::size_t taken = 0;
  while (!ready() && taken < bytes.size()) {
    const auto count = std::min(needed(), bytes.size() - taken);
    auto* part = state_ == State::kPrefix ? prefix_bytes_.data() : header_bytes_.data();
    std::copy_n(bytes.data() + taken, count, part + filled_);
    filled_ += count;
    taken += count;
    if (needed() > 0) continue;
    if (auto advanced = advance(); !advanced) {
      state_ = State::kFailed;
      error_ = advanced.error();
      return *error_;
    }
  }
  return taken;
}

/// A part is complete: checks it and goes on to the next one.
Status FrameDecoder::advance() {
  if (state_ == State::kPrefix) {
    HOLMES_TRY_ASSIGN(prefix_, decode_prefix(prefix_bytes_));
    state_ = State::kHeader;
    filled_ = 0;
    if (prefix_.header_bytes > 0) return {};
  }
  const std::span header(header_bytes_.data(), prefix_.header_bytes);
  if (!crc_matches(prefix_bytes_, header))
    return Error(ErrorCode::kCorrupt, "a frame head whose CRC is wrong");
  state_ = State::kReady;
  return {};
}

FrameHead FrameDecoder::head() const {
  HOLMES_ASSERT(ready(), "asked for a frame head that is not there yet");
  return {prefix_.type, prefix_.payload_bytes, {header_bytes_.data(), prefix_.header_bytes}};
}

void FrameDecoder::next() {
  HOLMES_ASSERT(ready(), "next frame before the head of this one was ready");
  state_ = State::kPrefix;
  filled_ = 0;
}

}  // namespace holmes::transport::wire
