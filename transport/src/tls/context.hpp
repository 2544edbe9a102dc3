#pragma once

// What is behind Tls.

#include "holmes/transport/tls.hpp"
#include "tls/openssl.hpp"

namespace holmes::transport {

struct Tls::State {
  tls::BioMethod sockets;  ///< How OpenSSL reads and writes a socket: session.cpp.
  tls::SslContext context;
  CertifiedName name;
};

namespace tls {

/// Reads and writes of a Session's socket; null if there is no memory.
BioMethod make_socket_method();

}  // namespace tls

}  // namespace holmes::transport
