#include "link/handshake.hpp"
#include "sim/pipe.hpp"

namespace holmes::transport::sim {

namespace {

/// How soon a dial that gets no answer is tried again.
constexpr Duration kRedial = std::chrono::milliseconds(100);
constexpr std::size_t kHelloBytes = 128;

/// An executor that somebody else owns and that outlives the network.
std::shared_ptr<Executor> borrow(Executor& executor) {
  return {std::shared_ptr<void>(), &executor};
}

class SimDial final : public std::enable_shared_from_this<SimDial> {
 public:
  SimDial(std::shared_ptr<NetworkState> network, std::shared_ptr<Executor> executor,
          std::size_t nic, Identity self, ConnectHandler done)
      : network_(std::move(network)),
        executor_(std::move(executor)),
        nic_(nic),
        self_(std::move(self)),
        done_(std::move(done)) {}

  void start(const Endpoint& remote, Duration deadline) {
    address_ = remote.address;
    if (const auto valid = check_identity(self_); !valid) return fail(valid.error());
    const auto target = network_->find_nic(address_.substr(0, address_.find(':')));
    if (!target || network_->nics[*target].fabric != network_->nics[nic_].fabric)
      return fail(Error(ErrorCode::kUnavailable,
                        address_ + ": there is no path from " + network_->nics[nic_].name));
    target_ = *target;
    timer_ = executor_->post_after(deadline, [self = shared_from_this()] {
      self->timer_.reset();
      self->fail(Error(ErrorCode::kTimeout, self->address_ + ": no answer"));
    });
    knock();
  }

  void fail(const Error& error) {
    if (!done_) return;
    executor_->post([done = std::exchange(done_, nullptr), error] { done(error); });
    stop_timer();
  }

 private:
  void stop_timer() {
    if (timer_) executor_->cancel(*timer_);
    timer_.reset();
  }

  /// A hello on its way; while the path is cut it is lost and sent again.
  void knock() {
    if (!done_) return;
    if (network_->is_cut(nic_, target_)) {
      executor_->post_after(kRedial, [self = shared_from_this()] { self->knock(); });
      return;
    }
    network_->note(nic_, target_, kHelloBytes);
    network_->loop.post_after(network_->latency(nic_, target_),
                              [self = shared_from_this()] { self->arrived(); });
  }

  void arrived() {
    const auto found = network_->acceptors.find(address_);
    if (found == network_->acceptors.end())
      return answer(Error(ErrorCode::kUnavailable, address_ + ": nobody listens there"));
    const auto acceptor = found->second;
    acceptor->executor->post(
        [self = shared_from_this(), weak = std::weak_ptr(acceptor)] { self->meet(weak.lock()); });
  }

  /// At the listener.
  void meet(const std::shared_ptr<SimAcceptor>& acceptor) {
    if (acceptor == nullptr)
      return answer(Error(ErrorCode::kUnavailable, address_ + ": nobody listens there"));
    const auto hello = make_hello(self_, {});
    const auto& name = network_->nics[nic_].name;
    if (const auto checked = check_hello(hello, acceptor->self); !checked) {
      answer(Error(ErrorCode::kRefused, address_ + " refuses: " + checked.error().message()));
      if (acceptor->refused) acceptor->refused(checked.error().in(name));
      return;
    }
    const auto [near, far] =
        SimPipe::make_pair(network_, acceptor->executor, executor_, target_, nic_);
    const auto link = std::make_shared<Link>(acceptor->executor, self_, describe_peer(self_, name));
    link->attach(near);
    near->attach(link);
    near->deliver_control(kHelloBytes, [self = shared_from_this(), pipe = far,
                                        peer = acceptor->self] { self->established(pipe, peer); });
    acceptor->accepted(link);
  }

  /// A refusal on its way back.
  void answer(const Error& error) {
    if (network_->is_cut(target_, nic_)) return;  // the dial ends by its deadline
    executor_->post_after(network_->latency(target_, nic_),
                          [self = shared_from_this(), error] { self->fail(error); });
  }

  void established(const std::shared_ptr<SimPipe>& pipe, const Identity& peer) {
    const auto link = std::make_shared<Link>(executor_, peer, describe_peer(peer, address_));
    link->attach(pipe);
    pipe->attach(link);
    stop_timer();
    // Too late: the link is dropped here, which closes it.
    if (const auto done = std::exchange(done_, nullptr))
      done(std::static_pointer_cast<Connection>(link));
  }

  std::shared_ptr<NetworkState> network_;
  std::shared_ptr<Executor> executor_;
  const std::size_t nic_;
  const Identity self_;
  ConnectHandler done_;
  std::string address_;
  std::size_t target_ = 0;
  std::optional<Executor::TimerId> timer_;
};

class SimListener final : public Listener {
 public:
  SimListener(std::weak_ptr<NetworkState> network, std::weak_ptr<SimAcceptor> acceptor,
              Endpoint endpoint)
      : network_(std::move(network)),
        acceptor_(std::move(acceptor)),
        endpoint_(std::move(endpoint)) {}

  ~SimListener() override {
    const auto network = network_.lock();
    if (network == nullptr) return;
    const auto found = network->acceptors.find(endpoint_.address);
    if (found != network->acceptors.end() && found->second == acceptor_.lock())
      network->acceptors.erase(found);
  }

  Endpoint endpoint() const override { return endpoint_; }

 private:
  std::weak_ptr<NetworkState> network_;
  std::weak_ptr<SimAcceptor> acceptor_;
  const Endpoint endpoint_;
};

class SimContext final : public Context {
 public:
  SimContext(std::shared_ptr<NetworkState> network, std::size_t nic, Executor& executor)
      : network_(std::move(network)), nic_(nic), executor_(executor) {}

  ~SimContext() override {
    for (const auto& weak : dials_)
      if (const auto dial = weak.lock())
        dial->fail(Error(ErrorCode::kClosed, "connect: its context is gone"));
  }

  Executor& executor() override { return executor_; }

  Result<std::unique_ptr<Listener>> listen(const Endpoint& at, const Identity& self,
                                           AcceptHandler accepted, RefuseHandler refused) override {
    HOLMES_TRY(check_identity(self));
    const auto& name = network_->nics[nic_].name;
    auto address = at.address;
    if (address.substr(0, address.find(':')) != name)
      return Error(ErrorCode::kInvalidArgument,
                   "cannot listen at " + address + ": this NIC is " + name);
    if (address == name + ":0") address = name + ":" + std::to_string(network_->next_port++);
    auto acceptor = std::make_shared<SimAcceptor>(
        SimAcceptor{nic_, self, borrow(executor_), std::move(accepted), std::move(refused)});
    if (!network_->acceptors.emplace(address, acceptor).second)
      return Error(ErrorCode::kUnavailable,
                   "cannot listen at " + address + ": the address is in use");
    return std::unique_ptr<Listener>(
        std::make_unique<SimListener>(network_, acceptor, Endpoint{address}));
  }

  void connect(const Endpoint& remote, const Identity& self, Duration deadline,
               ConnectHandler done) override {
    std::erase_if(dials_, [](const auto& weak) { return weak.expired(); });
    const auto dial =
        std::make_shared<SimDial>(network_, borrow(executor_), nic_, self, std::move(done));
    dials_.push_back(dial);
    dial->start(remote, deadline);
  }

 private:
  std::shared_ptr<NetworkState> network_;
  const std::size_t nic_;
  Executor& executor_;
  std::vector<std::weak_ptr<SimDial>> dials_;
};

}  // namespace

std::unique_ptr<Context> make_sim_context(std::shared_ptr<NetworkState> network, std::size_t nic,
                                          Executor& executor) {
  return std::make_unique<SimContext>(std::move(network), nic, executor);
}

}  // namespace holmes::transport::sim
