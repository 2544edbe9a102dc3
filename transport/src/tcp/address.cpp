#include "tcp/address.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>

#include <asio/ip/address.hpp>

#include "holmes/base/limits.hpp"

namespace holmes::transport::tcp {

Result<TcpEndpoint> parse_endpoint(const std::string& text) {
  const auto bad = [&] {
    return Error(ErrorCode::kInvalidArgument,
                 "\"" + text + "\" is no address: write IPv4:port or [IPv6]:port");
  };
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) return bad();
  auto host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, port);
  std::error_code error;
  const auto address = asio::ip::make_address(host, error);
  if (error || parsed.ec != std::errc() || parsed.ptr != end) return bad();
  return TcpEndpoint(address, port);
}

std::string to_text(const TcpEndpoint& endpoint) {
  std::string host = endpoint.address().to_string();
  if (endpoint.address().is_v6()) host = "[" + host + "]";
  return host + ":" + std::to_string(endpoint.port());
}

std::string remote_text(const Socket& socket) {
  std::error_code error;
  const auto endpoint = socket.remote_endpoint(error);
  return error ? "an unknown address" : to_text(endpoint);
}

void tune(Socket& socket) {
  // Failures are ignored: these are for speed, and a socket that is gone says so when it is used.
  std::error_code ignored;
  socket.non_blocking(true, ignored);
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  const int unsent_max = static_cast<int>(limits::kSocketUnsentBytesMax);
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_max,
               sizeof unsent_max);
}

void pace(Socket& socket, double gbit_s) {
  const auto bytes_s = static_cast<std::uint64_t>(gbit_s * 1e9 / 8);
  ::setsockopt(socket.native_handle(), SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_s, sizeof bytes_s);
}

Error io_error(const std::string& what, const std::error_code& error) {
  // By number: Asio's category does not map all of these to std::errc.
  switch (error.value()) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return Error(ErrorCode::kOutOfResources, what + ": " + error.message());
    default:
      return Error(ErrorCode::kClosed, what + ": " + error.message());
  }
}

}  // namespace holmes::transport::tcp
