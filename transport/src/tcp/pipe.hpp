#pragma once

// The pipe of the tcp backend: a control lane and a bulk lane, each a socket.

#include "link/sinks.hpp"
#include "tcp/lane.hpp"

namespace holmes::transport::tcp {

class TcpPipe final : public Pipe, public Closable, public std::enable_shared_from_this<TcpPipe> {
 public:
  TcpPipe(std::shared_ptr<LoopState> loop, Socket control, Socket bulk, bool checksum,
          std::shared_ptr<ControlMemory> memory);
  /// Begins to read for `link`.
  void start(const std::shared_ptr<Link>& link);

  void send(OutFrame frame, Task sent) override;
  void close(const std::optional<wire::Refusal>& farewell) override;
  void shut() override;

 private:
  LaneEvents events();

  std::shared_ptr<LoopState> loop_;
  const bool checksum_;
  std::weak_ptr<Link> link_;
  ControlSink control_sink_;
  BulkSink bulk_sink_;
  Lane control_;
  Lane bulk_;
};

}  // namespace holmes::transport::tcp
