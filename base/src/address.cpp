#include "holmes/base/address.hpp"

namespace holmes {

bool is_loopback(std::string_view address) {
  return address.empty() || address == "localhost" || address == "::1" || address == "[::1]" ||
         address.starts_with("127.");
}

std::string with_port(const std::string& address, std::uint32_t port) {
  const bool as_it_is = address.starts_with('[') || address.find(':') == std::string::npos;
  return (as_it_is ? address : "[" + address + "]") + ":" + std::to_string(port);
}

}  // namespace holmes
