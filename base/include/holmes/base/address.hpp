#pragma once

// Network addresses as text.

#include <cstdint>
#include <string>
#include <string_view>

namespace holmes {

/// Whether `address` is one that only this machine reaches; so is an empty one.
bool is_loopback(std::string_view address);

/// "10.1.2.3:4000"; IPv6 in brackets: "[fd00::2]:4000".
std::string with_port(const std::string& address, std::uint32_t port);

}  // namespace holmes
