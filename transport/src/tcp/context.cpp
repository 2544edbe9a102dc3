#include "holmes/transport/tcp.hpp"
#include "tcp/dial.hpp"
#include "tcp/listener.hpp"

namespace holmes::transport {

namespace tcp {

namespace {

class TcpContext final : public Context {
 public:
  TcpContext(EventLoop& loop, std::shared_ptr<LoopState> state, TcpOptions options)
      : loop_(loop),
        state_(std::move(state)),
        options_(std::move(options)),
        memory_(std::make_shared<ControlMemory>()) {
    HOLMES_ASSERT(options_.bulk_sockets >= 1 && options_.bulk_sockets <= wire::kLanesMax,
                  "a link has 1 to 16 bulk sockets");
  }

  ~TcpContext() override {
    for (const auto& weak : dials_)
      if (const auto dial = weak.lock()) dial->abandon();
  }

  Executor& executor() override { return loop_; }

  Result<std::unique_ptr<Listener>> listen(const Endpoint& at, const Identity& self,
                                           AcceptHandler accepted, RefuseHandler refused) override {
    auto acceptor = std::make_shared<Acceptor>(state_, options_, memory_, self, std::move(accepted),
                                               std::move(refused));
    HOLMES_TRY_ASSIGN(auto endpoint, acceptor->open(at));
    return std::unique_ptr<Listener>(
        std::make_unique<TcpListener>(std::move(acceptor), std::move(endpoint)));
  }

  void connect(const Endpoint& remote, const Identity& self, Duration deadline,
               ConnectHandler done) override {
    std::erase_if(dials_, [](const auto& weak) { return weak.expired(); });
    const auto dial = std::make_shared<Dial>(state_, options_, memory_, self, std::move(done));
    dials_.push_back(dial);
    dial->start(remote, deadline);
  }

 private:
  EventLoop& loop_;
  std::shared_ptr<LoopState> state_;
  const TcpOptions options_;
  std::shared_ptr<ControlMemory> memory_;
  std::vector<std::weak_ptr<Dial>> dials_;
};

}  // namespace

}  // namespace tcp

std::unique_ptr<Context> make_tcp_context(EventLoop& loop, TcpOptions options) {
  return std::make_unique<tcp::TcpContext>(loop, loop.state_, std::move(options));
}

}  // namespace holmes::transport
