#include "tcp/pipe.hpp"

#include "holmes/base/limits.hpp"

namespace holmes::transport::tcp {

namespace {

constexpr std::size_t kControlReadAheadBytes = 16 * kKiB;

}  // namespace

TcpPipe::TcpPipe(std::shared_ptr<LoopState> loop, Socket control, Socket bulk, bool checksum,
                 std::shared_ptr<ControlMemory> memory)
    : loop_(std::move(loop)),
      checksum_(checksum),
      control_sink_(std::move(memory)),
      control_(*loop_, std::move(control), control_sink_, kControlReadAheadBytes),
      bulk_(*loop_, std::move(bulk), bulk_sink_, 0) {}

void TcpPipe::start(const std::shared_ptr<Link>& link) {
  link_ = link;
  control_sink_.set_link(link);
  bulk_sink_.set_link(link);
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

}  // namespace holmes::transport::tcp
