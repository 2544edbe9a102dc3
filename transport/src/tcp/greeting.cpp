#include "tcp/greeting.hpp"

#include <asio/ssl/error.hpp>

#include "tls/name.hpp"

namespace holmes::transport::tcp {

namespace {

/// Time that a refused peer has to read the reason.
constexpr Duration kLinger = std::chrono::seconds(1);

}  // namespace

Greeting::Greeting(std::shared_ptr<LoopState> loop, Socket socket,
                   const std::shared_ptr<const Tls>& tls, tls::Side side)
    : loop_(std::move(loop)),
      stream_(std::make_unique<Stream>(std::move(socket), tls, side)),
      remote_(remote_text(stream_->socket())),
      begun_(loop_->clock().now()) {}

Greeting::~Greeting() {
  if (timer_) loop_->cancel(*timer_);
}

void Greeting::send(const wire::Hello& hello, SendHandler done) {
  HOLMES_ASSERT(!send_done_, "a greeting sends one hello");
  hello_ = wire::encode(hello);
  send_done_ = std::move(done);
  step_later();
}

void Greeting::receive(Duration deadline, HelloHandler done) {
  receive_done_ = std::move(done);
  timer_ = loop_->post_after(deadline, [weak = weak_from_this(), deadline] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->timer_.reset();
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(deadline).count();
    const std::string what = self->shaken_ ? "hello" : "TLS handshake and hello";
    self->finish_receive(Error(
        ErrorCode::kTimeout,
        self->remote_ + ": no complete " + what + " within " + std::to_string(waited) + " ms"));
  });
  step_later();
}

void Greeting::step_later() {
  if (std::exchange(stepping_, true)) return;
  asio::post(loop_->io(), [self = shared_from_this()] { self->step(); });
}

/// Proves, writes, reads: as far as it goes now.
void Greeting::step() {
  stepping_ = false;
  if (!stream_ || (!send_done_ && !receive_done_)) return;
  if (!shake() || !write()) return;
  if (stream_ && receive_done_) read();
}

bool Greeting::shake() {
  std::error_code error;
  if (!shaken_) shaken_ = stream_->handshake(error);
  if (!shaken_) wait_or_fail(error);
  return shaken_;
}

bool Greeting::write() {
  while (!hello_.empty()) {
    const asio::const_buffer piece = asio::buffer(hello_);
    std::error_code error;
    const auto bytes = stream_->write_some(std::span(&piece, 1), error);
    if (would_block(error)) {
      stepping_ = true;
      stream_->wait_writable([self = shared_from_this()] { self->step(); });
      return false;
    }
    if (error) {
      wait_or_fail(error);
      return false;
    }
    hello_.erase(hello_.begin(), hello_.begin() + static_cast<std::ptrdiff_t>(bytes));
  }
  if (const auto done = std::exchange(send_done_, nullptr)) done({});
  return true;
}

void Greeting::read() {
  while (!decoder_.ready()) {
    const asio::mutable_buffer piece(bytes_.data(), std::min(decoder_.needed(), bytes_.size()));
    std::error_code error;
    const auto bytes = stream_->read_some(std::span(&piece, 1), error);
    if (error) return wait_or_fail(error);
    if (!first_ && bytes > 0) first_ = bytes_[0];
    const auto taken = decoder_.consume(std::span(bytes_).first(bytes));
    if (!taken) return finish_receive(spoken_wrongly(taken.error()));
  }
  finish_receive(decode());
}

void Greeting::wait_or_fail(const std::error_code& error) {
  if (would_block(error)) {
    stepping_ = true;
    return stream_->wait_handshake([self = shared_from_this()] { self->step(); });
  }
  const bool gone = error.category() != asio::error::get_ssl_category();
  const auto why = stream_->failed(gone ? remote_ + ": gone before its hello" : remote_, error);
  if (const auto done = std::exchange(send_done_, nullptr)) done(why);
  finish_receive(why);
}

/// Who speaks TLS to a plain job is told that, and not about frames.
Error Greeting::spoken_wrongly(const Error& error) const {
  constexpr std::byte kHandshakeRecord{22};
  if (stream_->encrypted() || first_ != kHandshakeRecord) return error.in(remote_ + " sends");
  return Error(ErrorCode::kRefused,
               remote_ +
                   ": it speaks TLS, but this job's connections are plain: start both ends with "
                   "the same transport.security");
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

Status Greeting::check(const wire::Hello& hello, const std::vector<std::string>& host_names) const {
  if (!stream_ || !stream_->encrypted()) return {};
  return tls::check_claim(hello, stream_->peer(), host_names);
}

void Greeting::finish_receive(Result<wire::Hello> result) {
  if (timer_) loop_->cancel(*timer_);
  timer_.reset();
  if (const auto done = std::exchange(receive_done_, nullptr)) done(std::move(result));
}

/// As far as one write goes: the peer may be anybody.
void Greeting::tell(const Error& reason) {
  const auto frame = wire::encode(wire::Refusal{reason.code(), reason.message()});
  const asio::const_buffer piece = asio::buffer(frame);
  std::error_code ignored;
  if (shaken_ || !stream_->encrypted()) {
    if (stream_->between_writes()) stream_->write_some(std::span(&piece, 1), ignored);
  } else if (stream_->peer_is_plain()) {
    stream_->socket().write_some(piece, ignored);
  }
}

void Greeting::refuse(const Error& reason) {
  if (!stream_) return;
  tell(reason);
  std::error_code ignored;
  stream_->socket().shutdown(Socket::shutdown_send, ignored);
  timer_ = loop_->post_after(kLinger, [self = shared_from_this()] {
    self->timer_.reset();
    self->stream_.reset();
  });
  drain();
}

/// Reads and drops, so that closing does not reset the connection before the reason was read.
void Greeting::drain() {
  if (!stream_) return;
  stream_->socket().async_read_some(
      asio::buffer(bytes_), [self = shared_from_this()](std::error_code error, std::size_t) {
        if (!error) return self->drain();
        if (self->timer_) self->loop_->cancel(*self->timer_);
        self->timer_.reset();
        self->stream_.reset();
      });
}

void Greeting::give_up(const Error& why) {
  if (stream_) tell(why);
  stream_.reset();
  send_done_ = nullptr;
  finish_receive(why);
}

void Greeting::shut() {
  stream_.reset();
  send_done_ = nullptr;
  finish_receive(Error(ErrorCode::kClosed, remote_ + ": the event loop stops"));
}

std::unique_ptr<Stream> Greeting::release() {
  HOLMES_ASSERT(stream_ && !receive_done_ && !send_done_,
                "a socket is released in the middle of a hello");
  return std::move(stream_);
}

}  // namespace holmes::transport::tcp
