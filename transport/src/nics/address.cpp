#include "nics/address.hpp"

#include <arpa/inet.h>

#include <algorithm>

namespace holmes::transport::nics {

namespace {

constexpr std::size_t kV4Offset = 12;

}  // namespace

std::optional<IpAddress> IpAddress::parse(const std::string& text) {
  IpAddress address;
  if (::inet_pton(AF_INET6, text.c_str(), address.bytes.data()) == 1) return address;
  address.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (::inet_pton(AF_INET, text.c_str(), address.bytes.data() + kV4Offset) == 1) return address;
  return std::nullopt;
}

bool IpAddress::is_v4() const {
  return std::all_of(bytes.begin(), bytes.begin() + 10, [](auto byte) { return byte == 0; }) &&
         bytes[10] == 0xff && bytes[11] == 0xff;
}

bool IpAddress::is_zero() const {
  return std::all_of(bytes.begin() + (is_v4() ? kV4Offset : 0), bytes.end(),
                     [](auto byte) { return byte == 0; });
}

bool IpAddress::is_loopback() const {
  if (is_v4()) return bytes[kV4Offset] == 127;
  return std::all_of(bytes.begin(), bytes.end() - 1, [](auto byte) { return byte == 0; }) &&
         bytes.back() == 1;
}

bool IpAddress::is_link_local() const {
  if (is_v4()) return bytes[kV4Offset] == 169 && bytes[kV4Offset + 1] == 254;
  return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

std::string IpAddress::text() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (is_v4())
    ::inet_ntop(AF_INET, bytes.data() + kV4Offset, text.data(), text.size());
  else
    ::inet_ntop(AF_INET6, bytes.data(), text.data(), text.size());
  return text.data();
}

std::string IpAddress::network(unsigned bits) const {
  IpAddress network = *this;
  const unsigned first = is_v4() ? 96 : 0;
  for (unsigned bit = first + bits; bit < 128; ++bit)
    network.bytes[bit / 8] &= static_cast<std::uint8_t>(~(0x80U >> (bit % 8)));
  return network.text() + "/" + std::to_string(bits);
}

}  // namespace holmes::transport::nics
