#include "tcp/lane.hpp"

#include <array>

#include <asio/buffer.hpp>
#include <asio/error.hpp>

namespace holmes::transport::tcp {

namespace {

constexpr std::size_t kGatherFramesMax = 8;
/// Bytes read before the lane lets others have a turn.
constexpr std::size_t kReadTurnBytes = 1 * kMiB;

asio::const_buffer rest_of(std::span<const std::byte> bytes, std::size_t& skip) {
  const auto skipped = std::min(skip, bytes.size());
  skip -= skipped;
  return {bytes.data() + skipped, bytes.size() - skipped};
}

bool would_block(const std::error_code& error) {
  return error == asio::error::would_block || error == asio::error::try_again;
}

}  // namespace

Lane::Lane(LoopState& loop, Socket socket, wire::FrameSink& sink, std::size_t read_ahead)
    : loop_(loop), socket_(std::move(socket)), reader_(sink, read_ahead) {
  tune(*socket_);
}

void Lane::start(std::weak_ptr<void> keep, LaneEvents events) {
  keep_ = std::move(keep);
  events_ = std::move(events);
  if (socket_) await_readable();
}

void Lane::write(wire::EncodedHead head, BufferView payload, Task sent) {
  if (!socket_) return;
  queue_.push_back({std::move(head), std::move(payload), std::move(sent)});
  if (!writing_) flush();
}

void Lane::write_last(const wire::EncodedHead& head) {
  if (!socket_ || front_written_ != 0 || writing_) return;
  std::error_code ignored;
  socket_->write_some(asio::buffer(head), ignored);
}

void Lane::close() {
  socket_.reset();
  queue_.clear();
  events_ = {};
}

/// Writes until the queue is empty or the socket takes no more.
void Lane::flush() {
  while (socket_ && !queue_.empty()) {
    std::array<asio::const_buffer, 2 * kGatherFramesMax> pieces;
    std::size_t count = 0;
    std::size_t skip = front_written_;
    for (const auto& out : queue_) {
      pieces[count++] = rest_of(out.head, skip);
      pieces[count++] = rest_of(out.payload.bytes(), skip);
      if (count == pieces.size()) break;
    }
    std::error_code error;
    const auto written =
        socket_->write_some(std::span<const asio::const_buffer>(pieces).first(count), error);
    if (would_block(error)) return await_writable();
    if (error) return lost(error);
    take_written(written);
  }
}

void Lane::take_written(std::size_t bytes) {
  if (events_.sent) events_.sent(bytes);
  front_written_ += bytes;
  while (!queue_.empty()) {
    auto& front = queue_.front();
    const auto size = front.head.size() + front.payload.size();
    if (front_written_ < size) break;
    front_written_ -= size;
    loop_.post(std::move(front.sent));
    queue_.pop_front();
  }
}

void Lane::await_writable() {
  writing_ = true;
  socket_->async_wait(Socket::wait_write, [this, keep = keep_.lock()](std::error_code) {
    if (!socket_) return;
    writing_ = false;
    flush();
  });
}

void Lane::await_readable() {
  socket_->async_wait(Socket::wait_read, [this, keep = keep_.lock()](std::error_code) {
    if (socket_) read();
  });
}

/// Reads what is there. What the sink does may close this lane: look at socket_ after each step.
void Lane::read() {
  for (std::size_t turn = 0; turn < kReadTurnBytes;) {
    const auto space = reader_.space();
    std::error_code error;
    const auto bytes = socket_->read_some(asio::buffer(space.data(), space.size()), error);
    if (would_block(error)) break;
    if (error) return lost(error);
    turn += bytes;
    events_.received(bytes);
    const auto status = reader_.filled(bytes);
    if (!socket_) return;
    if (!status) {
      const auto violated = events_.violated;
      return violated(status.error());
    }
    if (bytes < space.size()) break;  // nothing more is there now
  }
  await_readable();
}

void Lane::lost(const std::error_code& error) {
  const auto report = events_.lost;  // outlives close()
  report(error == asio::error::eof
             ? Error(ErrorCode::kClosed, "the peer went away (its end of the connection closed)")
             : io_error("the connection broke", error));
}

}  // namespace holmes::transport::tcp
