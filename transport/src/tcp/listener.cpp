#include "tcp/listener.hpp"

#include <algorithm>
#include <cerrno>

#include <asio/error.hpp>

#include "link/handshake.hpp"

namespace holmes::transport::tcp {

namespace {

/// Peers that may be saying hello at one time; more are turned away.
constexpr std::size_t kGreetingsMax = 1024;
/// Who has taken longer makes way for a newcomer when there are so many.
constexpr Duration kGreetingIsSlow = std::chrono::milliseconds(500);
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);

Error too_many(const Greeting& greeting) {
  return Error(ErrorCode::kOutOfResources,
               greeting.remote() + ": too many peers say hello at a time");
}

}  // namespace

Acceptor::Acceptor(std::shared_ptr<LoopState> loop, const TcpOptions& options,
                   std::shared_ptr<ControlMemory> memory, Identity self, AcceptHandler accepted,
                   RefuseHandler refused)
    : loop_(std::move(loop)),
      options_(options),
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
  const auto greeting =
      std::make_shared<Greeting>(loop_, std::move(socket), options_.tls, tls::Side::kListener);
  make_room();
  if (greetings_.size() + halves_.size() >= kGreetingsMax) {
    const auto full = too_many(*greeting);
    greeting->give_up(full);
    return report(full);
  }
  if (!loop_->add(std::weak_ptr<Closable>(greeting))) return greeting->shut();
  const auto place = greetings_.insert(greetings_.end(), greeting);
  greeting->receive(options_.handshake_deadline,
                    [weak = weak_from_this(), greeting, place](const Result<wire::Hello>& hello) {
                      const auto self = weak.lock();
                      if (self == nullptr || !self->acceptor_) return;
                      self->greetings_.erase(place);
                      self->greeted(greeting, hello);
                    });
}

/// Strangers that say nothing must not keep the others out.
void Acceptor::make_room() {
  if (greetings_.size() + halves_.size() < kGreetingsMax || greetings_.empty()) return;
  const auto oldest = greetings_.front();
  if (loop_->clock().now() - oldest->begun() > kGreetingIsSlow) oldest->give_up(too_many(*oldest));
}

void Acceptor::greeted(const std::shared_ptr<Greeting>& greeting,
                       const Result<wire::Hello>& hello) {
  if (!hello) return refuse(*greeting, hello.error());
  auto checked = check_hello(*hello, self_);
  if (checked) checked = greeting->check(*hello, options_.host_names);
  if (!checked) return refuse(*greeting, checked.error().in(greeting->remote()));
  if (hello->purpose == wire::Purpose::kControl) return keep_half(greeting, *hello);
  join(greeting, *hello);
}

void Acceptor::keep_half(const std::shared_ptr<Greeting>& greeting, const wire::Hello& hello) {
  const LinkKey key{hello.host, hello.nic, hello.link_nonce};
  if (halves_.contains(key))
    return refuse(*greeting, Error(ErrorCode::kRefused, "this link's control socket exists"));
  const auto timer = loop_->post_after(options_.handshake_deadline, [weak = weak_from_this(), key] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    const auto found = self->halves_.extract(key);
    if (found.empty()) return;
    auto& half = *found.mapped();
    for (const auto& bulk : half.bulk)
      if (bulk != nullptr) bulk->shut();
    self->refuse(*half.control,
                 Error(ErrorCode::kTimeout,
                       half.control->remote() + ": its bulk socket did not come in time"));
  });
  auto half = std::make_shared<Half>(Half{greeting, hello, timer, {}});
  half->bulk.resize(hello.lanes);
  halves_.emplace(key, std::move(half));
  greeting->send(make_hello(self_, {wire::Purpose::kControl, hello.link_nonce, 0, hello.lanes}),
                 [](const Status&) {});
}

void Acceptor::join(const std::shared_ptr<Greeting>& bulk, const wire::Hello& hello) {
  const auto found = halves_.find(LinkKey{hello.host, hello.nic, hello.link_nonce});
  if (found == halves_.end())
    return refuse(*bulk, Error(ErrorCode::kRefused,
                               bulk->remote() + ": a bulk socket without its control socket"));
  const auto half = found->second;
  if (hello.lanes != half->bulk.size() || half->bulk[hello.lane] != nullptr)
    return refuse(*bulk, Error(ErrorCode::kRefused,
                               bulk->remote() + ": a bulk socket that its link does not have"));
  half->bulk[hello.lane] = bulk;
  const auto& all = half->bulk;
  if (std::find(all.begin(), all.end(), nullptr) != all.end()) return;
  loop_->cancel(half->timer);
  halves_.erase(found);
  answer_all(half);
}

/// All sockets are here: answers the bulk sockets' hellos, then the link begins.
void Acceptor::answer_all(const std::shared_ptr<Half>& half) {
  const auto left = std::make_shared<std::size_t>(half->bulk.size());
  for (std::uint8_t lane = 0; lane < half->hello.lanes; ++lane)
    half->bulk[lane]->send(
        make_hello(self_, {wire::Purpose::kBulk, half->hello.link_nonce, lane, half->hello.lanes}),
        [self = shared_from_this(), half, left](const Status& sent) {
          if (!self->acceptor_ || *left == 0) return;
          if (sent) {
            if (--*left == 0) self->established(*half);
            return;
          }
          *left = 0;
          self->report(sent.error());
        });
}

void Acceptor::established(const Half& half) {
  const auto peer = identity_of(half.hello);
  const auto link =
      std::make_shared<Link>(loop_, peer, describe_peer(peer, half.control->remote()));
  const auto pipe =
      std::make_shared<TcpPipe>(loop_, release_all(*half.control, half.bulk), options_, memory_);
  link->attach(pipe);
  options_.logger.debug("accepted " + link->where());
  const auto accepted = accepted_;
  accepted(link);
  if (link->open()) pipe->start(link);
}

void Acceptor::refuse(Greeting& greeting, const Error& reason) {
  greeting.refuse(reason);
  report(reason);
}

void Acceptor::report(const Error& reason) {
  options_.logger.debug("refused: " + reason.message());
  const auto refused = refused_;
  if (refused) refused(reason);
}

/// Stops listening and drops those who are not through yet.
void Acceptor::shut() {
  acceptor_.reset();
  for (const auto& greeting : std::exchange(greetings_, {})) greeting->shut();
  for (auto& [key, half] : std::exchange(halves_, {})) {
    loop_->cancel(half->timer);
    half->control->shut();
    for (const auto& bulk : half->bulk)
      if (bulk != nullptr) bulk->shut();
  }
  accepted_ = nullptr;
  refused_ = nullptr;
}

}  // namespace holmes::transport::tcp
