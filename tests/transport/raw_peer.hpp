#pragma once

// A peer made of plain sockets, which can misbehave in every way that a real one must not.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "wire/codec.hpp"
#include "wire/frame_decoder.hpp"

namespace holmes::transport {

class RawSocket {
 public:
  explicit RawSocket(int fd = ::socket(AF_INET, SOCK_STREAM, 0)) : fd_(fd) {}
  RawSocket(RawSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RawSocket& operator=(RawSocket&&) = delete;
  ~RawSocket() { close(); }

  /// Connects to "127.0.0.1:port".
  static RawSocket dial(const std::string& endpoint) {
    RawSocket socket;
    auto address =
        loopback(static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))));
    socket.ok_ = ::connect(socket.fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    return socket;
  }

  /// Listens at a free port.
  std::string listen() {
    auto address = loopback(0);
    socklen_t size = sizeof address;
    ok_ = ::bind(fd_, reinterpret_cast<sockaddr*>(&address), size) == 0 && ::listen(fd_, 8) == 0 &&
          ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }

  /// A dialler is waiting, or bytes are there to read.
  bool readable() const {
    pollfd entry{fd_, POLLIN, 0};
    return ::poll(&entry, 1, 0) == 1;
  }
  RawSocket accept() { return RawSocket(::accept(fd_, nullptr, nullptr)); }

  void send(std::span<const std::byte> bytes) {
    ok_ =
        ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  void send(const std::string& text) { send(std::as_bytes(std::span(text))); }

  /// Everything that is there now.
  std::vector<std::byte> read() {
    std::vector<std::byte> bytes(64 * 1024);
    const auto count = ::recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return bytes;
  }

  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  /// Goes the way of a host that crashed and came back: with a reset.
  void reset() {
    const linger hard{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close();
  }
  bool ok() const { return ok_; }
  int descriptor() const { return fd_; }

 private:
  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

  int fd_;
  bool ok_ = true;
};

/// The reason in a refusal frame, or "" if `bytes` is none.
inline std::string refusal_in(std::span<const std::byte> bytes) {
  wire::FrameDecoder decoder;
  const auto taken = decoder.consume(bytes);
  if (!taken || !decoder.ready() || decoder.head().type != wire::FrameType::kRefusal) return "";
  const auto refusal = wire::decode_refusal(decoder.head().header);
  return refusal ? refusal->reason : "";
}

}  // namespace holmes::transport
