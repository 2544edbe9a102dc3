#include "link/sinks.hpp"

namespace holmes::transport {

namespace {

constexpr std::size_t kControlPoolBytesMax = 64 * kMiB;
constexpr std::size_t kPooledBytesMax = 64 * kKiB;

/// Stops the reader of a link that is gone; nobody sees it.
Error ended() {
  return Error(ErrorCode::kClosed, "the link has ended");
}

Error unexpected(const wire::FrameHead& head, const char* lane) {
  return Error(ErrorCode::kCorrupt, "a frame of type " +
                                        std::to_string(static_cast<int>(head.type)) +
                                        " has no place in the " + lane + " lane");
}

}  // namespace

ControlMemory::ControlMemory() : pool_(kControlPoolBytesMax) {}

Result<Buffer> ControlMemory::acquire(std::size_t bytes) {
  if (bytes <= kPooledBytesMax) return pool_.acquire(bytes);
  return Buffer::allocate(bytes);
}

Status ControlSink::on_head(const wire::FrameHead& head) {
  const auto link = link_.lock();
  if (link == nullptr) return {};
  switch (head.type) {
    case wire::FrameType::kControl:
      return begin_message(head);
    case wire::FrameType::kCredit: {
      HOLMES_TRY_ASSIGN(const auto credit, wire::decode_credit(head.header));
      link->credit_arrived(credit);
      return {};
    }
    case wire::FrameType::kRefusal: {
      HOLMES_TRY_ASSIGN(const auto farewell, wire::decode_refusal(head.header));
      link->farewell_arrived(farewell);
      return {};
    }
    case wire::FrameType::kHello:
    case wire::FrameType::kChunk:
      break;
  }
  return unexpected(head, "control");
}

Status ControlSink::begin_message(const wire::FrameHead& head) {
  HOLMES_TRY_ASSIGN(head_, wire::decode_control(head.header));
  HOLMES_TRY_ASSIGN(message_, memory_->acquire(head.payload_bytes));
  filled_ = 0;
  return head.payload_bytes == 0 ? end_message() : Status();
}

std::span<std::byte> ControlSink::payload_space() {
  return message_.mutable_bytes().subspan(filled_);
}

Status ControlSink::on_payload(std::size_t bytes) {
  filled_ += bytes;
  return filled_ < message_.size() ? Status() : end_message();
}

Status ControlSink::end_message() {
  if (wire::checksum(message_.bytes()) != head_.checksum)
    return Error(ErrorCode::kCorrupt, "a control message has a wrong checksum");
  if (const auto link = link_.lock()) link->control_arrived(std::move(message_));
  return {};
}

Status BulkSink::on_head(const wire::FrameHead& head) {
  if (head.type != wire::FrameType::kChunk) return unexpected(head, "bulk");
  HOLMES_TRY_ASSIGN(const auto chunk, wire::decode_chunk(head.header, head.payload_bytes));
  const auto link = link_.lock();
  if (link == nullptr) return ended();
  link->chunk_begins(lane_, chunk, head.payload_bytes);
  return link->open() ? Status() : ended();
}

std::span<std::byte> BulkSink::payload_space() {
  const auto link = link_.lock();
  HOLMES_ASSERT(link != nullptr, "a lane reads although its link is gone");
  return link->payload_space(lane_);
}

Status BulkSink::on_payload(std::size_t bytes) {
  const auto link = link_.lock();
  if (link == nullptr) return ended();
  link->payload_filled(lane_, bytes);
  return link->open() ? Status() : ended();
}

}  // namespace holmes::transport
