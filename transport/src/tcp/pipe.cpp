#include "tcp/pipe.hpp"

#include "holmes/base/limits.hpp"

namespace holmes::transport::tcp {

namespace {

constexpr std::size_t kControlReadAheadBytes = 16 * kKiB;
constexpr std::size_t kControlPoolBytesMax = 64 * kMiB;
constexpr std::size_t kPooledBytesMax = 64 * kKiB;

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

TcpPipe::TcpPipe(std::shared_ptr<LoopState> loop, Socket control, Socket bulk, bool checksum,
                 std::shared_ptr<ControlMemory> memory)
    : loop_(std::move(loop)),
      checksum_(checksum),
      memory_(std::move(memory)),
      control_(*loop_, std::move(control), control_sink_, kControlReadAheadBytes),
      bulk_(*loop_, std::move(bulk), bulk_sink_, 0) {}

void TcpPipe::start(const std::shared_ptr<Link>& link) {
  link_ = link;
  if (!loop_->add(weak_from_this())) return shut();
  control_.start(weak_from_this(), events());
  bulk_.start(weak_from_this(), events());
}

LaneEvents TcpPipe::events() {
  // The lanes are members: their events never outlive this.
  return {[this](std::size_t bytes) {
            if (const auto link = link_.lock()) link->count_sent(bytes);
          },
          [this](std::size_t bytes) {
            if (const auto link = link_.lock()) link->count_received(bytes);
          },
          [this](const Error& error) {
            if (const auto link = link_.lock()) link->lost(error.in(link->where()));
          },
          [this](const Error& error) {
            if (const auto link = link_.lock()) link->fail(error.in(link->where()));
          }};
}

void TcpPipe::send(OutFrame frame, Task sent) {
  const auto bytes = frame.payload.bytes();
  if (auto* chunk = std::get_if<wire::Chunk>(&frame.head)) {
    if (checksum_) chunk->checksum = wire::checksum(bytes);
    bulk_.write(wire::encode(*chunk, bytes.size()), std::move(frame.payload), std::move(sent));
  } else if (const auto* credit = std::get_if<wire::Credit>(&frame.head)) {
    control_.write(wire::encode(*credit), {}, std::move(sent));
  } else {
    control_.write(wire::encode(wire::Control{wire::checksum(bytes)}, bytes.size()),
                   std::move(frame.payload), std::move(sent));
  }
}

void TcpPipe::close(const std::optional<wire::Refusal>& farewell) {
  if (farewell) control_.write_last(wire::encode(*farewell));
  control_.close();
  bulk_.close();
}

void TcpPipe::shut() {
  if (const auto link = link_.lock()) link->close();
  close({});
}

Status TcpPipe::ControlSink::on_head(const wire::FrameHead& head) {
  const auto link = pipe_.link_.lock();
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

Status TcpPipe::ControlSink::begin_message(const wire::FrameHead& head) {
  HOLMES_TRY_ASSIGN(head_, wire::decode_control(head.header));
  HOLMES_TRY_ASSIGN(message_, pipe_.memory_->acquire(head.payload_bytes));
  filled_ = 0;
  return head.payload_bytes == 0 ? end_message() : Status();
}

std::span<std::byte> TcpPipe::ControlSink::payload_space() {
  return message_.mutable_bytes().subspan(filled_);
}

Status TcpPipe::ControlSink::on_payload(std::size_t bytes) {
  filled_ += bytes;
  return filled_ < message_.size() ? Status() : end_message();
}

Status TcpPipe::ControlSink::end_message() {
  if (wire::checksum(message_.bytes()) != head_.checksum)
    return Error(ErrorCode::kCorrupt, "a control message has a wrong checksum");
  if (const auto link = pipe_.link_.lock()) link->control_arrived(std::move(message_));
  return {};
}

Status TcpPipe::BulkSink::on_head(const wire::FrameHead& head) {
  if (head.type != wire::FrameType::kChunk) return unexpected(head, "bulk");
  HOLMES_TRY_ASSIGN(const auto chunk, wire::decode_chunk(head.header, head.payload_bytes));
  if (const auto link = pipe_.link_.lock()) link->chunk_begins(chunk, head.payload_bytes);
  return {};
}

std::span<std::byte> TcpPipe::BulkSink::payload_space() {
  const auto link = pipe_.link_.lock();
  HOLMES_ASSERT(link != nullptr, "a lane reads although its link is gone");
  return link->payload_space();
}

Status TcpPipe::BulkSink::on_payload(std::size_t bytes) {
  if (const auto link = pipe_.link_.lock()) link->payload_filled(bytes);
  return {};
}

}  // namespace holmes::transport::tcp
