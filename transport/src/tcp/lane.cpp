#include "tcp/lane.hpp"

#include <array>

#include <asio/buffer.hpp>
#include <asio/error.hpp>
#include <asio/post.hpp>

namespace holmes::transport::tcp {

namespace {

constexpr std::size_t kGatherFramesMax = 16;
/// Bytes read or written before the lane lets others have a turn.
constexpr std::size_t kTurnBytes = 1 * kMiB;
constexpr std::size_t kSparesMax = kGatherFramesMax;

asio::const_buffer rest_of(std::span<const std::byte> bytes, std::size_t& skip) {
  const auto skipped = std::min(skip, bytes.size());
  skip -= skipped;
  return {bytes.data() + skipped, bytes.size() - skipped};
}

}  // namespace

Lane::Lane(LoopState& loop, std::unique_ptr<Stream> stream, wire::FrameSink& sink,
           std::size_t read_ahead)
    : loop_(loop), stream_(std::move(stream)), reader_(sink, read_ahead) {
  spares_.reserve(kSparesMax);
}

void Lane::start(std::weak_ptr<void> keep, LaneEvents events) {
  keep_ = std::move(keep);
  events_ = std::move(events);
  started_ = true;
  if (!stream_) return;
  await_readable();
  if (!queue_.empty()) schedule_flush();
}

wire::EncodedHead Lane::take_spare() {
  if (spares_.empty()) return {};
  auto head = std::move(spares_.back());
  spares_.pop_back();
  return head;
}

void Lane::write(wire::EncodedHead head, BufferView payload, bool report) {
  if (!stream_) return;
  queue_.push_back({std::move(head), std::move(payload), report});
  if (started_ && !writing_) schedule_flush();
}

void Lane::write_last(const wire::EncodedHead& head) {
  if (!stream_ || front_written_ != 0 || !stream_->between_writes()) return;
  const asio::const_buffer piece = asio::buffer(head);
  std::error_code ignored;
  stream_->write_some(std::span(&piece, 1), ignored);
}

void Lane::close() {
  stream_.reset();
  queue_.clear();
}

void Lane::schedule_flush() {
  writing_ = true;
  asio::post(loop_.io(), [this, keep = keep_.lock()] {
    if (stream_) flush();
  });
}

/// Writes until the queue is empty, the socket takes no more, or the turn is over.
void Lane::flush() {
  for (std::size_t turn = 0; !queue_.empty();) {
    if (turn >= kTurnBytes) return schedule_flush();
    std::array<asio::const_buffer, 2 * kGatherFramesMax> pieces;
    std::size_t count = 0;
    std::size_t skip = front_written_;
    for (const auto& out : queue_) {
      pieces[count++] = rest_of(out.head, skip);
      if (out.payload.size() > 0) pieces[count++] = rest_of(out.payload.bytes(), skip);
      if (count + 2 > pieces.size()) break;
    }
    std::error_code error;
    const auto written =
        stream_->write_some(std::span<const asio::const_buffer>(pieces).first(count), error);
    if (would_block(error)) return await_writable();
    if (error) return lost(error);
    turn += written;
    if (!take_written(written)) return;
  }
  writing_ = false;
}

/// False: the lane was closed by what heard of it.
bool Lane::take_written(std::size_t bytes) {
  events_.sent(bytes);
  front_written_ += bytes;
  while (stream_ && !queue_.empty()) {
    auto& front = queue_.front();
    const auto size = front.head.size() + front.payload.size();
    if (front_written_ < size) break;
    front_written_ -= size;
    const bool report = front.report;
    if (spares_.size() < kSparesMax) spares_.push_back(std::move(front.head));
    queue_.pop_front();
    if (report) events_.frame_written();
  }
  return stream_ != nullptr;
}

void Lane::await_writable() {
  stream_->wait_writable([this, keep = keep_.lock()] {
    if (stream_) flush();
  });
}

void Lane::await_readable() {
  if (reader_.between_frames() && !stream_->encrypted()) return read_head();
  stream_->wait_readable([this, keep = keep_.lock()] {
    if (stream_) read();
  });
}

/// Between frames the place of the next bytes is certain: one call waits and reads, which spares
/// the system calls of asking first. (Not under TLS, whose bytes come in records.)
void Lane::read_head() {
  const auto space = reader_.space().first;
  stream_->socket().async_read_some(
      asio::buffer(space.data(), space.size()),
      [this, keep = keep_.lock(), size = space.size()](std::error_code error, std::size_t bytes) {
        if (!stream_) return;
        if (error) return lost(error);
        if (!take_read(bytes)) return;
        if (bytes < size) return await_readable();
        read();
      });
}

/// False: the lane was closed by what came.
bool Lane::take_read(std::size_t bytes) {
  events_.received(bytes);
  const auto status = reader_.filled(bytes);
  if (!stream_) return false;
  if (!status) events_.violated(status.error());
  return status.has_value() && stream_ != nullptr;
}

/// Reads what is there. What the sink does may close this lane: look at stream_ after each step.
void Lane::read() {
  for (std::size_t turn = 0; turn < kTurnBytes;) {
    const auto space = reader_.space();
    const std::array<asio::mutable_buffer, 2> pieces = {
        asio::buffer(space.first.data(), space.first.size()),
        asio::buffer(space.second.data(), space.second.size())};
    std::error_code error;
    const auto count = std::size_t{space.second.empty() ? 1U : 2U};
    const auto bytes = stream_->read_some(std::span(pieces).first(count), error);
    if (would_block(error)) break;
    if (error) return lost(error);
    turn += bytes;
    if (!take_read(bytes)) return;
    if (bytes < space.first.size() + space.second.size()) break;  // nothing more is there now
  }
  await_readable();
}

void Lane::lost(const std::error_code& error) {
  events_.lost(
      error == asio::error::eof
          ? Error(ErrorCode::kClosed, "the peer went away (its end of the connection closed)")
          : stream_->failed("the connection broke", error));
}

}  // namespace holmes::transport::tcp
