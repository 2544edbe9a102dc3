#include "tcp/greeting.hpp"

#include <asio/write.hpp>

namespace holmes::transport::tcp {

namespace {

/// Time that a refused peer has to read the reason.
constexpr Duration kLinger = std::chrono::seconds(1);

}  // namespace

Greeting::Greeting(std::shared_ptr<LoopState> loop, Socket socket)
    : loop_(std::move(loop)), socket_(std::move(socket)), remote_(remote_text(*socket_)) {
  tune(*socket_);
}

Greeting::~Greeting() {
  if (timer_) loop_->cancel(*timer_);
}

void Greeting::send(const wire::Hello& hello, SendHandler done) {
  auto head = std::make_shared<wire::EncodedHead>(wire::encode(hello));
  const auto buffer = asio::buffer(*head);
  asio::async_write(*socket_, buffer,
                    [self = shared_from_this(), head = std::move(head), done = std::move(done)](
                        std::error_code error, std::size_t) {
                      if (error) return done(io_error(self->remote_ + ": hello not sent", error));
                      done({});
                    });
}

void Greeting::receive(Duration deadline, HelloHandler done) {
  receive_done_ = std::move(done);
  timer_ = loop_->post_after(deadline, [weak = weak_from_this(), deadline] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->timer_.reset();
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(deadline).count();
    self->finish_receive(Error(ErrorCode::kTimeout, self->remote_ + ": no complete hello within " +
                                                        std::to_string(waited) + " ms"));
  });
  read_more();
}

void Greeting::read_more() {
  if (!socket_) return;
  const auto wanted = std::min(decoder_.needed(), bytes_.size());
  socket_->async_read_some(
      asio::buffer(bytes_.data(), wanted),
      [self = shared_from_this()](std::error_code error, std::size_t bytes) {
        if (!self->receive_done_) return;
        if (error)
          return self->finish_receive(io_error(self->remote_ + ": gone before its hello", error));
        const auto taken = self->decoder_.consume(std::span(self->bytes_).first(bytes));
        if (!taken) return self->finish_receive(taken.error().in(self->remote_ + " sends"));
        if (!self->decoder_.ready()) return self->read_more();
        self->finish_receive(self->decode());
      });
}

Result<wire::Hello> Greeting::decode() {
  const auto head = decoder_.head();
  if (head.type == wire::FrameType::kHello) {
    auto hello = wire::decode_hello(head.header);
    return hello ? hello : hello.error().in(remote_ + " sends");
  }
  if (head.type != wire::FrameType::kRefusal)
    return Error(ErrorCode::kCorrupt, remote_ + " sends another frame before its hello");
  HOLMES_TRY_ASSIGN(const auto refusal, wire::decode_refusal(head.header));
  return Error(ErrorCode::kRefused, remote_ + " refuses: " + refusal.reason);
}

void Greeting::finish_receive(Result<wire::Hello> result) {
  if (timer_) loop_->cancel(*timer_);
  timer_.reset();
  if (const auto done = std::exchange(receive_done_, nullptr)) done(std::move(result));
}

void Greeting::refuse(const Error& reason) {
  if (!socket_) return;
  std::error_code ignored;
  socket_->write_some(asio::buffer(wire::encode(wire::Refusal{reason.code(), reason.message()})),
                      ignored);
  socket_->shutdown(Socket::shutdown_send, ignored);
  timer_ = loop_->post_after(kLinger, [self = shared_from_this()] {
    self->timer_.reset();
    self->socket_.reset();
  });
  drain();
}

/// Reads and drops, so that closing does not reset the connection before the reason was read.
void Greeting::drain() {
  if (!socket_) return;
  socket_->async_read_some(asio::buffer(bytes_),
                           [self = shared_from_this()](std::error_code error, std::size_t) {
                             if (!error) return self->drain();
                             if (self->timer_) self->loop_->cancel(*self->timer_);
                             self->timer_.reset();
                             self->socket_.reset();
                           });
}

void Greeting::shut() {
  socket_.reset();
  finish_receive(Error(ErrorCode::kClosed, remote_ + ": the event loop stops"));
}

Socket Greeting::release() {
  HOLMES_ASSERT(socket_ && !receive_done_, "a socket is released in the middle of a hello");
  Socket socket = std::move(*socket_);
  socket_.reset();
  return socket;
}

}  // namespace holmes::transport::tcp
