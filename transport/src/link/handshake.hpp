#pragma once

// What both ends of a new connection check in the other's hello.

#include "holmes/transport/connection.hpp"
#include "wire/codec.hpp"

namespace holmes::transport {

/// kInvalidArgument for an identity that no hello can carry.
Status check_identity(const Identity& identity);

/// Which socket of a link a hello is for.
struct LinkSocket {
  wire::Purpose purpose = wire::Purpose::kControl;
  std::uint64_t link_nonce = 0;
  std::uint8_t lane = 0;
  std::uint8_t lanes = 1;
};
wire::Hello make_hello(const Identity& self, const LinkSocket& socket);

/// kRefused, with a reason for the peer's user, unless `hello` fits `self`.
Status check_hello(const wire::Hello& hello, const Identity& self);

Identity identity_of(const wire::Hello& hello);

/// "host 1, NIC 0 at ADDRESS".
std::string describe_peer(const Identity& peer, const std::string& address);

}  // namespace holmes::transport
