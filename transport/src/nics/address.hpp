#pragma once

// IP addresses as bytes: what kind they are, and their text.

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace holmes::transport::nics {

/// An IPv6 address, or an IPv4 one as ::ffff:a.b.c.d.
struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};

  static std::optional<IpAddress> parse(const std::string& text);
  bool is_v4() const;
  bool is_zero() const;
  bool is_loopback() const;
  /// fe80::/10 or 169.254.0.0/16: known on one link only.
  bool is_link_local() const;
  /// Of other hosts: none of the above.
  bool is_routable() const { return !is_zero() && !is_loopback() && !is_link_local(); }
  /// "10.1.2.3" or "fd00::2".
  std::string text() const;
  /// The first `bits`, of an IPv4 address of its own 32; "10.1.2.0/24".
  std::string network(unsigned bits) const;
  friend bool operator==(const IpAddress&, const IpAddress&) = default;
};

}  // namespace holmes::transport::nics
