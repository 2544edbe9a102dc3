#include "tcp/stream.hpp"

#include <asio/error.hpp>
#include <asio/ssl/error.hpp>

namespace holmes::transport::tcp {

bool would_block(const std::error_code& error) {
  return error == asio::error::would_block || error == asio::error::try_again;
}

Stream::Stream(Socket socket, const std::shared_ptr<const Tls>& tls, tls::Side side)
    : socket_(std::move(socket)) {
  tune(socket_);
  if (tls != nullptr) tls_ = std::make_unique<tls::Session>(tls, socket_.native_handle(), side);
}

bool Stream::handshake(std::error_code& error) {
  error = {};
  return !tls_ || tls_->handshake(error);
}

std::size_t Stream::read_some(std::span<const asio::mutable_buffer> to, std::error_code& error) {
  if (!tls_) return to.size() == 1 ? socket_.read_some(to[0], error) : socket_.read_some(to, error);
  std::size_t filled = 0;
  for (const auto& piece : to) {
    filled += tls_->read({static_cast<std::byte*>(piece.data()), piece.size()}, error);
    if (error || tls_->starved()) break;
  }
  if (filled > 0) error = {};
  return filled;
}

std::size_t Stream::write_some(std::span<const asio::const_buffer> pieces, std::error_code& error) {
  if (!tls_) return socket_.write_some(pieces, error);
  return tls_->write(pieces, error);
}

Error Stream::failed(const std::string& what, const std::error_code& error) const {
  if (tls_ && error.category() == asio::error::get_ssl_category()) return tls_->reason().in(what);
  return io_error(what, error);
}

}  // namespace holmes::transport::tcp
