#pragma once

// The pipe of the tcp backend: a control lane and one or more bulk lanes, each a socket.

#include "holmes/transport/tcp.hpp"
#include "link/sinks.hpp"
#include "tcp/greeting.hpp"
#include "tcp/lane.hpp"

namespace holmes::transport::tcp {

class TcpPipe final : public Pipe, public Closable, public std::enable_shared_from_this<TcpPipe> {
 public:
  struct Sockets {
    std::unique_ptr<Stream> control;
    std::vector<std::unique_ptr<Stream>> bulk;
  };
  TcpPipe(std::shared_ptr<LoopState> loop, Sockets sockets, const TcpOptions& options,
          std::shared_ptr<ControlMemory> memory);
  /// Begins to read and write for `link`.
  void start(const std::shared_ptr<Link>& link);

  std::size_t bulk_lanes() const override { return bulk_.size(); }
  void send_control(BufferView message) override;
  void send_credit(const wire::Credit& credit) override;
  void send_chunk(std::size_t lane, const wire::Chunk& chunk, BufferView payload) override;
  void close(const std::optional<wire::Refusal>& farewell) override;
  void shut() override;

 private:
  struct BulkLane {
    BulkLane(LoopState& loop, std::unique_ptr<Stream> stream, std::size_t index)
        : sink(index), lane(loop, std::move(stream), sink, 0) {}
    BulkSink sink;
    Lane lane;
  };

  LaneEvents events(std::function<void(Link&)> frame_written);

  std::shared_ptr<LoopState> loop_;
  const bool checksum_;
  std::weak_ptr<Link> link_;
  ControlSink control_sink_;
  Lane control_;
  std::vector<std::unique_ptr<BulkLane>> bulk_;
};

/// Takes the sockets out of their greetings.
TcpPipe::Sockets release_all(Greeting& control, const std::vector<std::shared_ptr<Greeting>>& bulk);

}  // namespace holmes::transport::tcp
