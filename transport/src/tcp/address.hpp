#pragma once

// Addresses as text, and the sockets' options.

#include <string>

#include <asio/ip/tcp.hpp>

#include "holmes/base/result.hpp"

namespace holmes::transport::tcp {

using Socket = asio::ip::tcp::socket;
using TcpEndpoint = asio::ip::tcp::endpoint;

/// "127.1.2.1:4000" or "[::1]:4000". Names are not looked up: that blocks.
Result<TcpEndpoint> parse_endpoint(const std::string& text);
std::string to_text(const TcpEndpoint& endpoint);
/// The socket's other end, or "an unknown address" when it is gone.
std::string remote_text(const Socket& socket);
/// No delay for small frames, little unsent data, no blocking.
void tune(Socket& socket);
/// The kernel spreads what is sent so that it does not exceed the rate.
void pace(Socket& socket, double gbit_s);

/// An operating-system error of a connection as ours.
Error io_error(const std::string& what, const std::error_code& error);

}  // namespace holmes::transport::tcp
