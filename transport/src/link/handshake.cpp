#include "link/handshake.hpp"

#include <limits>

namespace holmes::transport {

Status check_identity(const Identity& identity) {
  if (identity.job.size() <= wire::kJobBytesMax) return {};
  return Error(ErrorCode::kInvalidArgument,
               "job id of " + std::to_string(identity.job.size()) + " bytes, at most " +
                   std::to_string(wire::kJobBytesMax) + " allowed: shorten run.name");
}

wire::Hello make_hello(const Identity& self, const LinkSocket& socket) {
  return {wire::schema_hash(), self.job,          self.host,   self.nic,    self.epoch,
          socket.purpose,      socket.link_nonce, socket.lane, socket.lanes};
}

Status check_hello(const wire::Hello& hello, const Identity& self) {
  if (hello.schema_hash != wire::schema_hash())
    return Error(ErrorCode::kRefused,
                 "the two programs were built with different message schemas: run the same "
                 "release of Holmes on all hosts");
  if (hello.job != self.job)
    return Error(ErrorCode::kRefused, "job \"" + hello.job + "\" is not job \"" + self.job +
                                          "\", which runs here: check address and port");
  return {};
}

Identity identity_of(const wire::Hello& hello) {
  return {hello.job, hello.host, hello.nic, hello.epoch};
}

std::string describe_peer(const Identity& peer, const std::string& address) {
  // Connections that belong to no NIC, such as those to the coordinator, carry the largest number.
  const bool has_nic = peer.nic.value() != std::numeric_limits<std::uint32_t>::max();
  return "host " + std::to_string(peer.host.value()) +
         (has_nic ? ", NIC " + std::to_string(peer.nic.value()) : "") + " at " + address;
}

}  // namespace holmes::transport
