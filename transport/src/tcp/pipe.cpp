#include "tcp/pipe.hpp"

#include "holmes/base/limits.hpp"

namespace holmes::transport::tcp {

namespace {

constexpr std::size_t kControlReadAheadBytes = 16 * kKiB;

}  // namespace

TcpPipe::TcpPipe(std::shared_ptr<LoopState> loop, Sockets sockets, const TcpOptions& options,
                 std::shared_ptr<ControlMemory> memory)
    : loop_(std::move(loop)),
      checksum_(options.checksum),
      control_sink_(std::move(memory)),
      control_(*loop_, std::move(sockets.control), control_sink_, kControlReadAheadBytes) {
  const auto lanes = static_cast<double>(sockets.bulk.size());
  for (auto& stream : sockets.bulk) {
    if (options.pacing_gbit_s > 0) pace(stream->socket(), options.pacing_gbit_s / lanes);
    bulk_.push_back(std::make_unique<BulkLane>(*loop_, std::move(stream), bulk_.size()));
  }
}

TcpPipe::Sockets release_all(Greeting& control,
                             const std::vector<std::shared_ptr<Greeting>>& bulk) {
  TcpPipe::Sockets sockets{control.release(), {}};
  for (const auto& greeting : bulk) sockets.bulk.push_back(greeting->release());
  return sockets;
}

void TcpPipe::start(const std::shared_ptr<Link>& link) {
  link_ = link;
  control_sink_.set_link(link);
  for (auto& lane : bulk_) lane->sink.set_link(link);
  if (!loop_->add(weak_from_this())) return shut();
  control_.start(weak_from_this(), events([](Link& to) { to.control_sent(); }));
  for (std::size_t i = 0; i < bulk_.size(); ++i)
    bulk_[i]->lane.start(weak_from_this(), events([i](Link& to) { to.chunk_sent(i); }));
}

LaneEvents TcpPipe::events(std::function<void(Link&)> frame_written) {
  // The lanes are members: their events never outlive this.
  return {[this](std::size_t bytes) {
            if (const auto link = link_.lock()) link->count_sent(bytes);
          },
          [this, frame_written = std::move(frame_written)] {
            if (const auto link = link_.lock()) frame_written(*link);
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

void TcpPipe::send_control(BufferView message) {
  const auto bytes = message.bytes();
  auto head =
      wire::encode(wire::Control{wire::checksum(bytes)}, bytes.size(), control_.take_spare());
  control_.write(std::move(head), std::move(message), true);
}

void TcpPipe::send_credit(const wire::Credit& credit) {
  control_.write(wire::encode(credit, control_.take_spare()), {}, false);
}

void TcpPipe::send_chunk(std::size_t lane, const wire::Chunk& chunk, BufferView payload) {
  auto& to = bulk_.at(lane)->lane;
  const auto checksum =
      checksum_ ? std::optional(wire::checksum(payload.bytes())) : std::optional<std::uint64_t>();
  auto head = wire::encode(chunk, checksum, payload.size(), to.take_spare());
  to.write(std::move(head), std::move(payload), true);
}

void TcpPipe::close(const std::optional<wire::Refusal>& farewell) {
  if (farewell) control_.write_last(wire::encode(*farewell));
  control_.close();
  for (auto& lane : bulk_) lane->lane.close();
}

void TcpPipe::shut() {
  if (const auto link = link_.lock()) link->close();
  close({});
}

}  // namespace holmes::transport::tcp
