#pragma once

// The listening side: greets each socket that comes, refuses who does not belong, and brings the
// sockets of a link together by the nonce in their hellos.

#include <list>
#include <map>

#include <asio/ip/tcp.hpp>

#include "holmes/transport/tcp.hpp"
#include "tcp/greeting.hpp"
#include "tcp/pipe.hpp"

namespace holmes::transport::tcp {

class Acceptor final : public Closable, public std::enable_shared_from_this<Acceptor> {
 public:
  Acceptor(std::shared_ptr<LoopState> loop, const TcpOptions& options,
           std::shared_ptr<ControlMemory> memory, Identity self, AcceptHandler accepted,
           RefuseHandler refused);

  Result<Endpoint> open(const Endpoint& at);
  void shut() override;

 private:
  /// A link whose control socket is here and whose bulk sockets are not all here yet.
  struct Half {
    std::shared_ptr<Greeting> control;
    wire::Hello hello;
    Executor::TimerId timer;
    std::vector<std::shared_ptr<Greeting>> bulk;  // by lane; null: not here yet
  };
  using LinkKey = std::tuple<HostId, NicId, std::uint64_t>;

  void accept();
  void accepted_socket(Socket socket);
  void make_room();
  void greeted(const std::shared_ptr<Greeting>& greeting, const Result<wire::Hello>& hello);
  void keep_half(const std::shared_ptr<Greeting>& greeting, const wire::Hello& hello);
  void join(const std::shared_ptr<Greeting>& bulk, const wire::Hello& hello);
  void answer_all(const std::shared_ptr<Half>& half);
  void established(const Half& half);
  void refuse(Greeting& greeting, const Error& reason);
  void report(const Error& reason);

  std::shared_ptr<LoopState> loop_;
  const TcpOptions options_;
  std::shared_ptr<ControlMemory> memory_;
  const Identity self_;
  AcceptHandler accepted_;
  RefuseHandler refused_;
  std::optional<asio::ip::tcp::acceptor> acceptor_;
  std::list<std::shared_ptr<Greeting>> greetings_;  // that have not said hello
  std::map<LinkKey, std::shared_ptr<Half>> halves_;
};

class TcpListener final : public Listener {
 public:
  TcpListener(std::shared_ptr<Acceptor> acceptor, Endpoint endpoint)
      : acceptor_(std::move(acceptor)), endpoint_(std::move(endpoint)) {}
  ~TcpListener() override { acceptor_->shut(); }
  Endpoint endpoint() const override { return endpoint_; }

 private:
  std::shared_ptr<Acceptor> acceptor_;
  const Endpoint endpoint_;
};

}  // namespace holmes::transport::tcp
