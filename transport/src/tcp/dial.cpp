#include "tcp/dial.hpp"

#include <asio/error.hpp>

namespace holmes::transport::tcp {

Dial::Dial(std::shared_ptr<LoopState> loop, const TcpOptions& options,
           std::shared_ptr<ControlMemory> memory, Identity self, ConnectHandler done)
    : loop_(std::move(loop)),
      options_(options),
      memory_(std::move(memory)),
      self_(std::move(self)),
      done_(std::move(done)),
      nonce_(loop_->next_nonce()) {}

void Dial::start(const Endpoint& remote, Duration deadline) {
  if (!loop_->add(weak_from_this()))
    return fail(Error(ErrorCode::kClosed, "connect: the event loop stops"));
  if (const auto valid = check_identity(self_); !valid) return fail(valid.error());
  auto parsed = parse_endpoint(remote.address);
  if (!parsed) return fail(parsed.error());
  remote_ = *parsed;
  deadline_ = loop_->clock().now() + deadline;
  timer_ = loop_->post_after(deadline, [self = shared_from_this(), deadline] {
    self->timer_.reset();
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(deadline).count();
    self->fail(Error(ErrorCode::kTimeout, to_text(self->remote_) + ": not connected after " +
                                              std::to_string(waited) + " ms, while " +
                                              self->doing_));
  });
  open_socket(wire::Purpose::kControl, 0);
}

Status Dial::bind(Socket& socket) const {
  std::error_code error;
  socket.open(remote_.protocol(), error);
  if (error) return io_error("connect to " + to_text(remote_), error);
  if (options_.local_address.empty()) return {};
  const auto address = asio::ip::make_address(options_.local_address, error);
  if (!error) socket.bind(TcpEndpoint(address, 0), error);
  if (!error) return {};
  return Error(ErrorCode::kInvalidArgument, "cannot dial from address \"" + options_.local_address +
                                                "\": " + error.message() +
                                                ": does this host have it?");
}

void Dial::open_socket(wire::Purpose purpose, std::uint8_t lane) {
  connecting_.emplace(loop_->io());
  if (const auto bound = bind(*connecting_); !bound) return fail(bound.error());
  const LinkSocket which{purpose, nonce_, lane, options_.bulk_sockets};
  connecting_->async_connect(remote_, [self = shared_from_this(), which](std::error_code error) {
    self->connected(which, error);
  });
}

void Dial::connected(const LinkSocket& which, std::error_code error) {
  if (!done_) return;
  if (error)
    return fail(Error(ErrorCode::kUnavailable, to_text(remote_) + ": " + error.message() +
                                                   ": is the peer running and the port right?"));
  auto greeting =
      std::make_shared<Greeting>(loop_, std::move(*connecting_), options_.tls, tls::Side::kDialler);
  connecting_.reset();
  const bool bulk = which.purpose == wire::Purpose::kBulk;
  if (bulk)
    bulk_.push_back(greeting);
  else
    control_ = greeting;
  doing_ = "waiting for its hello: it accepts connections and says nothing";
  // Should sending fail, then so does receiving, and that has the better message.
  greeting->send(make_hello(self_, which), [](const Status&) {});
  greeting->receive(deadline_ - loop_->clock().now() + std::chrono::seconds(1),
                    [weak = weak_from_this(), which](Result<wire::Hello> hello) {
                      if (const auto self = weak.lock()) self->greeted(which, std::move(hello));
                    });
  if (bulk && bulk_.size() < options_.bulk_sockets)
    open_socket(wire::Purpose::kBulk, static_cast<std::uint8_t>(bulk_.size()));
}

Status Dial::check(const Greeting& greeting, const wire::Hello& hello,
                   const LinkSocket& which) const {
  HOLMES_TRY(check_hello(hello, self_));
  HOLMES_TRY(greeting.check(hello, options_.host_names));
  if (hello.purpose != which.purpose || hello.link_nonce != nonce_ || hello.lane != which.lane)
    return Error(ErrorCode::kCorrupt, "its hello answers another one");
  return {};
}

void Dial::greeted(const LinkSocket& which, Result<wire::Hello> hello) {
  if (!done_) return;
  if (!hello) return fail(hello.error());
  const auto& greeting = which.purpose == wire::Purpose::kBulk ? bulk_.at(which.lane) : control_;
  if (const auto checked = check(*greeting, *hello, which); !checked)
    return fail(checked.error().in(to_text(remote_)));
  if (which.purpose == wire::Purpose::kBulk) {
    if (++bulk_greeted_ == options_.bulk_sockets) established();
    return;
  }
  peer_ = *hello;
  open_socket(wire::Purpose::kBulk, 0);
}

void Dial::established() {
  const auto peer = identity_of(*peer_);
  const auto where = describe_peer(peer, to_text(remote_));
  const auto link = std::make_shared<Link>(loop_, peer, where);
  const auto pipe =
      std::make_shared<TcpPipe>(loop_, release_all(*control_, bulk_), options_, memory_);
  link->attach(pipe);
  options_.logger.debug("connected to " + where);
  finish(std::static_pointer_cast<Connection>(link));
  if (link->open()) pipe->start(link);
}

void Dial::finish(Result<std::shared_ptr<Connection>> result) {
  if (timer_) loop_->cancel(*timer_);
  timer_.reset();
  connecting_.reset();
  if (const auto done = std::exchange(done_, nullptr)) done(std::move(result));
}

void Dial::fail(const Error& error) {
  if (!done_) return;
  // start() may have called: never complete inside it.
  loop_->post([done = std::exchange(done_, nullptr), error] { done(error); });
  if (control_ != nullptr) control_->shut();
  for (const auto& bulk : bulk_) bulk->shut();
  finish(error);
}

void Dial::shut() {
  fail(Error(ErrorCode::kClosed, "connect: the event loop stops"));
}

void Dial::abandon() {
  fail(Error(ErrorCode::kClosed, "connect: its context is gone"));
}

}  // namespace holmes::transport::tcp
