#include "link/handshake.hpp"

#include <limits>

namespace holmes::transport {

Status check_identity(const Identity& identity) {
  if (identity.host_name.size() > wire::kHostNameBytesMax)
    return Error(ErrorCode::kInvalidArgument,
                 "host name of " + std::to_string(identity.host_name.size()) + " bytes, at most " +
                     std::to_string(wire::kHostNameBytesMax) + " allowed");
  if (identity.job.size() <= wire::kJobBytesMax) return {};
  return Error(ErrorCode::kInvalidArgument,
               "job id of " + std::to_string(identity.job.size()) + " bytes, at most " +
                   std::to_string(wire::kJobBytesMax) + " allowed: shorten run.name");
}

wire::Hello make_hello(const Identity& self, const LinkSocket& socket) {
  return {wire::schema_hash(), self.job,          self.host,   self.nic,     self.epoch,
          socket.purpose,      socket.link_nonce, socket.lane, socket.lanes, self.host_name};
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
  return {hello.job, hello.host, hello.nic, hello.epoch, hello.host_name};
}

std::string describe_peer(const Identity& peer, const std::string& address) {
  // Who is no host, or no NIC, carries the largest number: the coordinator, and agents to it.
  constexpr auto kNone = std::numeric_limits<std::uint32_t>::max();
  if (!peer.host_name.empty()) return "host " + peer.host_name + " at " + address;
  if (peer.host.value() == kNone) return "the coordinator at " + address;
  return "host " + std::to_string(peer.host.value()) +
         (peer.nic.value() == kNone ? "" : ", NIC " + std::to_string(peer.nic.value())) + " at " +
         address;
}

}  // namespace holmes::transport
