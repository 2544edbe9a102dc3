#include "place.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <system_error>

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "run_folder.hpp"

namespace holmes::launcher {
namespace {

Error unavailable(std::string what) {
  return Error(ErrorCode::kUnavailable, std::move(what));
}

struct SocketAddress {
  sockaddr_storage value{};
  socklen_t bytes = sizeof(sockaddr_storage);
  int family() const { return value.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&value); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&value); }
  void set_port(std::uint16_t port) {
    if (family() == AF_INET)
      reinterpret_cast<sockaddr_in*>(&value)->sin_port = htons(port);
    else
      reinterpret_cast<sockaddr_in6*>(&value)->sin6_port = htons(port);
  }
  std::string text() const {
    std::array<char, NI_MAXHOST> digits{};
    ::getnameinfo(get(), bytes, digits.data(), digits.size(), nullptr, 0, NI_NUMERICHOST);
    return digits.data();
  }
};

Result<SocketAddress> look_up(const std::string& name) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int failed = ::getaddrinfo(name.c_str(), nullptr, &wanted, &list);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> found(failed == 0 ? list : nullptr,
                                                             ::freeaddrinfo);
  if (!found) return unavailable("'" + name + "' cannot be looked up: " + ::gai_strerror(failed));
  SocketAddress address;
  address.bytes = found->ai_addrlen;
  std::copy_n(reinterpret_cast<const std::byte*>(found->ai_addr), found->ai_addrlen,
              reinterpret_cast<std::byte*>(&address.value));
  return address;
}

bool is_of_this_machine(SocketAddress address) {
  const Descriptor socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  address.set_port(0);
  return socket && ::bind(socket.get(), address.get(), address.bytes) == 0;
}

/// Connecting a datagram socket sends nothing: the system only chooses the way.
Result<std::string> own_address_towards(SocketAddress remote, const std::string& name) {
  const Descriptor socket(::socket(remote.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  constexpr std::uint16_t kAnyPort = 9;
  remote.set_port(kAnyPort);
  SocketAddress own;
  if (!socket || ::connect(socket.get(), remote.get(), remote.bytes) != 0 ||
      ::getsockname(socket.get(), own.get(), &own.bytes) != 0)
    return unavailable("there is no way from here to " + name + " (" + remote.text() +
                       "): " + std::generic_category().message(errno));
  return own.text();
}

}  // namespace

Result<Place> place_of(const std::string& name) {
  HOLMES_TRY_ASSIGN(const auto remote, look_up(name));
  HOLMES_TRY_ASSIGN(auto own, own_address_towards(remote, name));
  return Place{remote.text(), std::move(own), is_of_this_machine(remote)};
}

Result<std::string> look_up_endpoint(const std::string& endpoint) {
  const auto colon = endpoint.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == endpoint.size())
    return Error(ErrorCode::kInvalidArgument, "'" + endpoint + "' is no ADDRESS:PORT");
  std::string name = endpoint.substr(0, colon);
  if (name.size() > 2 && name.front() == '[' && name.back() == ']')
    name = name.substr(1, name.size() - 2);
  HOLMES_TRY_ASSIGN(const auto address, look_up(name));
  const std::string digits = address.text();
  const bool v6 = address.family() == AF_INET6;
  return (v6 ? "[" + digits + "]" : digits) + endpoint.substr(colon);
}

}  // namespace holmes::launcher
