#pragma once

// A connected socket, plain or under TLS: what greetings and lanes read and write. Reads and writes
// never wait; waiting is for readiness, so that no buffer is touched behind its owner's back.
// Handlers run later, on the loop.

#include <array>
#include <optional>
#include <utility>

#include <asio/buffer.hpp>
#include <asio/post.hpp>

#include "tcp/address.hpp"
#include "tls/session.hpp"

namespace holmes::transport::tcp {

bool would_block(const std::error_code& error);

class Stream {
 public:
  /// `tls` null: plain.
  Stream(Socket socket, const std::shared_ptr<const Tls>& tls, tls::Side side);

  Socket& socket() { return socket_; }
  bool encrypted() const { return tls_ != nullptr; }
  /// Under TLS: who the other end has proven to be.
  std::optional<CertifiedName> peer() const { return tls_ ? tls_->peer() : std::nullopt; }

  /// True once reads and writes may begin; would_block where it goes on after a wait.
  bool handshake(std::error_code& error);
  std::size_t read_some(std::span<const asio::mutable_buffer> to, std::error_code& error);
  std::size_t write_some(std::span<const asio::const_buffer> pieces, std::error_code& error);
  /// The peer answers TLS with something else.
  bool peer_is_plain() const { return tls_ && tls_->is_foreign(); }
  /// Something may be written that does not go on with what would_block has left.
  bool between_writes() const { return !tls_ || tls_->idle(); }
  /// `what` and why, in words.
  Error failed(const std::string& what, const std::error_code& error) const;

  template <class Handler>
  void wait_writable(Handler handler) {
    socket_.async_wait(Socket::wait_write,
                       [handler = std::move(handler)](std::error_code) mutable { handler(); });
  }

  /// Under TLS bytes may be here that the socket's events do not tell of.
  template <class Handler>
  void wait_readable(Handler handler) {
    if (tls_ && tls_->has_bytes()) return asio::post(socket_.get_executor(), std::move(handler));
    socket_.async_wait(Socket::wait_read,
                       [handler = std::move(handler)](std::error_code) mutable { handler(); });
  }

  /// In the direction that a handshake waits for.
  template <class Handler>
  void wait_handshake(Handler handler) {
    if (tls_ && tls_->unsent()) return wait_writable(std::move(handler));
    wait_readable(std::move(handler));
  }

 private:
  Socket socket_;
  std::unique_ptr<tls::Session> tls_;
};

}  // namespace holmes::transport::tcp
