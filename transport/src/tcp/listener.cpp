#include "tcp/listener.hpp"

#include <cerrno>

#include <asio/error.hpp>

#include "link/handshake.hpp"

namespace holmes::transport::tcp {

namespace {

/// Peers that may be saying hello at one time; more are turned away.
constexpr std::size_t kGreetingsMax = 1024;
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);

}  // namespace

Acceptor::Acceptor(std::shared_ptr<LoopState> loop, const TcpOptions& options,
                   std::shared_ptr<ControlMemory> memory, Identity self, AcceptHandler accepted,
                   RefuseHandler refused)
    : loop_(std::move(loop)),
      checksum_(options.checksum),
      handshake_deadline_(options.handshake_deadline),
      memory_(std::move(memory)),
      self_(std::move(self)),
      accepted_(std::move(accepted)),
      refused_(std::move(refused)) {}

Result<Endpoint> Acceptor::open(const Endpoint& at) {
  HOLMES_TRY(check_identity(self_));
  HOLMES_TRY_ASSIGN(const auto endpoint, parse_endpoint(at.address));
  std::error_code error;
  acceptor_.emplace(loop_->io());
  acceptor_->open(endpoint.protocol(), error);
  if (!error) acceptor_->set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor_->bind(endpoint, error);
  if (!error) acceptor_->listen(asio::socket_base::max_listen_connections, error);
  const std::string what = "cannot listen at " + at.address;
  if (error == asio::error::address_in_use)
    return Error(ErrorCode::kUnavailable,
                 what + ": the port is in use by another program: choose another or end that one");
  if (error.value() == EADDRNOTAVAIL)
    return Error(ErrorCode::kInvalidArgument, what + ": this host does not have that address");
  if (error) return io_error(what, error);
  acceptor_->non_blocking(true, error);
  const auto bound = acceptor_->local_endpoint(error);
  if (error) return io_error(what, error);
  if (!loop_->add(weak_from_this()))
    return Error(ErrorCode::kClosed, what + ": the event loop stops");
  accept();
  return Endpoint{to_text(bound)};
}

void Acceptor::accept() {
  if (!acceptor_) return;
  acceptor_->async_accept([self = shared_from_this()](std::error_code error, Socket socket) {
    if (!self->acceptor_) return;
    if (!error) {
      self->accepted_socket(std::move(socket));
      return self->accept();
    }
    if (error == asio::error::connection_aborted) return self->accept();
    self->report(io_error("accept", error));  // out of descriptors, most likely: not at once again
    self->loop_->post_after(kAcceptPause, [self] { self->accept(); });
  });
}

void Acceptor::accepted_socket(Socket socket) {
  const auto greeting = std::make_shared<Greeting>(loop_, std::move(socket));
  if (greetings_.size() + halves_.size() >= kGreetingsMax)
    return refuse(*greeting, Error(ErrorCode::kOutOfResources,
                                   greeting->remote() + ": too many peers say hello at a time"));
  if (!loop_->add(std::weak_ptr<Closable>(greeting))) return greeting->shut();
  const auto place = greetings_.insert(greetings_.end(), greeting);
  greeting->receive(handshake_deadline_,
                    [weak = weak_from_this(), greeting, place](const Result<wire::Hello>& hello) {
                      const auto self = weak.lock();
                      if (self == nullptr || !self->acceptor_) return;
                      self->greetings_.erase(place);
                      self->greeted(greeting, hello);
                    });
}

void Acceptor::greeted(const std::shared_ptr<Greeting>& greeting,
                       const Result<wire::Hello>& hello) {
  if (!hello) return refuse(*greeting, hello.error());
  if (const auto checked = check_hello(*hello, self_); !checked)
    return refuse(*greeting, checked.error().in(greeting->remote()));
  if (hello->purpose == wire::Purpose::kControl) return keep_half(greeting, *hello);
  pair(greeting, *hello);
}

void Acceptor::keep_half(const std::shared_ptr<Greeting>& greeting, const wire::Hello& hello) {
  const LinkKey key{hello.host, hello.nic, hello.link_nonce};
  if (halves_.contains(key))
    return refuse(*greeting, Error(ErrorCode::kRefused, "this link's control socket exists"));
  const auto timer = loop_->post_after(handshake_deadline_, [weak = weak_from_this(), key] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    const auto half = self->halves_.extract(key);
    if (half.empty()) return;
    auto& control = *half.mapped().control;
    self->refuse(control, Error(ErrorCode::kTimeout,
                                control.remote() + ": its bulk socket did not come in time"));
  });
  halves_.emplace(key, Half{greeting, hello, timer});
  greeting->send(make_hello(self_, wire::Purpose::kControl, hello.link_nonce),
                 [](const Status&) {});
}

void Acceptor::pair(const std::shared_ptr<Greeting>& bulk, const wire::Hello& hello) {
  auto half = halves_.extract(LinkKey{hello.host, hello.nic, hello.link_nonce});
  if (half.empty())
    return refuse(*bulk, Error(ErrorCode::kRefused,
                               bulk->remote() + ": a bulk socket without its control socket"));
  loop_->cancel(half.mapped().timer);
  const auto control = half.mapped().control;
  bulk->send(make_hello(self_, wire::Purpose::kBulk, hello.link_nonce),
             [self = shared_from_this(), control, bulk, hello](const Status& sent) {
               if (!self->acceptor_) return;
               if (!sent) return self->report(sent.error());
               const auto peer = identity_of(hello);
               const auto link = std::make_shared<Link>(self->loop_, peer,
                                                        describe_peer(peer, control->remote()));
               const auto pipe =
                   std::make_shared<TcpPipe>(self->loop_, control->release(), bulk->release(),
                                             self->checksum_, self->memory_);
               link->attach(pipe);
               const auto accepted = self->accepted_;
               accepted(link);
               if (link->open()) pipe->start(link);
             });
}

void Acceptor::refuse(Greeting& greeting, const Error& reason) {
  greeting.refuse(reason);
  report(reason);
}

void Acceptor::report(const Error& reason) {
  const auto refused = refused_;
  if (refused) refused(reason);
}

/// Stops listening and drops those who are not through yet.
void Acceptor::shut() {
  acceptor_.reset();
  for (const auto& greeting : std::exchange(greetings_, {})) greeting->shut();
  for (auto& [key, half] : std::exchange(halves_, {})) {
    loop_->cancel(half.timer);
    half.control->shut();
  }
  accepted_ = nullptr;
  refused_ = nullptr;
}

}  // namespace holmes::transport::tcp
