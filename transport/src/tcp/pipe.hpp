#pragma once

// The pipe of the tcp backend: a control lane and a bulk lane, each a socket.

#include "link/link.hpp"
#include "tcp/lane.hpp"

namespace holmes::transport::tcp {

/// Memory for incoming control messages. Small ones come from a pool, as they come all the time.
class ControlMemory {
 public:
  ControlMemory();
  Result<Buffer> acquire(std::size_t bytes);

 private:
  BufferPool pool_;
};

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
  class ControlSink final : public wire::FrameSink {
   public:
    explicit ControlSink(TcpPipe& pipe) : pipe_(pipe) {}
    Status on_head(const wire::FrameHead& head) override;
    std::span<std::byte> payload_space() override;
    Status on_payload(std::size_t bytes) override;

   private:
    Status begin_message(const wire::FrameHead& head);
    Status end_message();

    TcpPipe& pipe_;
    wire::Control head_;
    Buffer message_;
    std::size_t filled_ = 0;
  };

  class BulkSink final : public wire::FrameSink {
   public:
    explicit BulkSink(TcpPipe& pipe) : pipe_(pipe) {}
    Status on_head(const wire::FrameHead& head) override;
    std::span<std::byte> payload_space() override;
    Status on_payload(std::size_t bytes) override;

   private:
    TcpPipe& pipe_;
  };

  LaneEvents events();

  std::shared_ptr<LoopState> loop_;
  const bool checksum_;
  std::shared_ptr<ControlMemory> memory_;
  std::weak_ptr<Link> link_;
  ControlSink control_sink_{*this};
  BulkSink bulk_sink_{*this};
  Lane control_;
  Lane bulk_;
};

}  // namespace holmes::transport::tcp
