#pragma once

// One attempt to connect: opens the control socket, exchanges hellos, then the bulk sockets one
// after the other; the listener answers their hellos once all are there. It holds itself alive by
// its pending operations and completes exactly once.

#include "holmes/transport/tcp.hpp"
#include "link/handshake.hpp"
#include "tcp/greeting.hpp"
#include "tcp/pipe.hpp"

namespace holmes::transport::tcp {

class Dial final : public Closable, public std::enable_shared_from_this<Dial> {
 public:
  Dial(std::shared_ptr<LoopState> loop, const TcpOptions& options,
       std::shared_ptr<ControlMemory> memory, Identity self, ConnectHandler done);

  void start(const Endpoint& remote, Duration deadline);
  void shut() override;
  /// The context is gone: nobody wants the connection.
  void abandon();

 private:
  void open_socket(wire::Purpose purpose, std::uint8_t lane);
  Status bind(Socket& socket) const;
  void connected(const LinkSocket& which, std::error_code error);
  void greeted(const LinkSocket& which, Result<wire::Hello> hello);
  Status check(const Greeting& greeting, const wire::Hello& hello, const LinkSocket& which) const;
  void established();
  void finish(Result<std::shared_ptr<Connection>> result);
  void fail(const Error& error);

  std::shared_ptr<LoopState> loop_;
  const TcpOptions options_;
  std::shared_ptr<ControlMemory> memory_;
  const Identity self_;
  ConnectHandler done_;
  const std::uint64_t nonce_;
  TcpEndpoint remote_;
  TimePoint deadline_;
  std::optional<Executor::TimerId> timer_;
  std::optional<Socket> connecting_;
  std::shared_ptr<Greeting> control_;
  std::vector<std::shared_ptr<Greeting>> bulk_;
  std::size_t bulk_greeted_ = 0;
  std::optional<wire::Hello> peer_;
  const char* doing_ = "connecting";  // for the message of a time-out
};

}  // namespace holmes::transport::tcp
