#pragma once

// One socket before it belongs to a link: sends a hello, waits for one, or refuses with a reason.
// It reads nothing beyond the hello. Whatever happens, each call's handler runs once, later.

#include "holmes/transport/connection.hpp"
#include "tcp/address.hpp"
#include "tcp/loop_state.hpp"
#include "wire/codec.hpp"
#include "wire/frame_decoder.hpp"

namespace holmes::transport::tcp {

class Greeting final : public Closable, public std::enable_shared_from_this<Greeting> {
 public:
  using HelloHandler = std::function<void(Result<wire::Hello>)>;

  Greeting(std::shared_ptr<LoopState> loop, Socket socket);
  ~Greeting() override;

  /// Sends `hello`, then (with `receive`) waits for the peer's until `deadline` has passed.
  void send(const wire::Hello& hello, SendHandler done);
  void receive(Duration deadline, HelloHandler done);
  /// Sends why, waits a moment until the peer has read it, and closes.
  void refuse(const Error& reason);
  void shut() override;

  const std::string& remote() const { return remote_; }
  bool open() const { return socket_.has_value(); }
  Socket release();

 private:
  void read_more();
  void finish_receive(Result<wire::Hello> result);
  Result<wire::Hello> decode();
  void drain();

  std::shared_ptr<LoopState> loop_;
  std::optional<Socket> socket_;
  const std::string remote_;
  wire::FrameDecoder decoder_;
  std::array<std::byte, wire::kHeaderBytesMax> bytes_{};
  HelloHandler receive_done_;
  std::optional<Executor::TimerId> timer_;
};

}  // namespace holmes::transport::tcp
