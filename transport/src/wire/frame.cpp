#include "wire/frame.hpp"

#include <algorithm>
#include <string>

namespace holmes::transport::wire {

namespace {

constexpr std::array<std::byte, 4> kMagic = {std::byte{'H'}, std::byte{'L'}, std::byte{'M'},
                                             std::byte{'S'}};
constexpr std::size_t kCrcOffset = 16;

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  constexpr std::uint32_t kPolynomialReversed = 0x82f63b78;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit)
      value = (value & 1) != 0 ? (value >> 1) ^ kPolynomialReversed : value >> 1;
    table[i] = value;
  }
  return table;
}
constexpr auto kCrcTable = make_crc_table();

template <class T>
void put(std::span<std::byte> out, std::size_t offset, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out[offset + i] = static_cast<std::byte>(value >> (8 * i));
}

template <class T>
T get(std::span<const std::byte> in, std::size_t offset) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value = static_cast<T>(value | static_cast<T>(in[offset + i]) << (8 * i));
  return value;
}

Error corrupt(std::string what) {
  return Error(ErrorCode::kCorrupt, std::move(what));
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) {
  crc = ~crc;
  for (const auto byte : bytes)
    crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<std::uint32_t>(byte)) & 0xff];
  return ~crc;
}

void encode_prefix(const Prefix& prefix, std::span<const std::byte> header,
                   std::span<std::byte, kPrefixBytes> out) {
  HOLMES_ASSERT(header.size() == prefix.header_bytes && header.size() <= kHeaderBytesMax,
                "frame header of the wrong size");
  HOLMES_ASSERT(prefix.payload_bytes <= payload_bytes_max(prefix.type), "frame payload too large");
  std::copy(kMagic.begin(), kMagic.end(), out.begin());
  put<std::uint16_t>(out, 4, prefix.version);
  put<std::uint8_t>(out, 6, static_cast<std::uint8_t>(prefix.type));
  put<std::uint8_t>(out, 7, 0);
  put<std::uint32_t>(out, 8, prefix.header_bytes);
  put<std::uint32_t>(out, 12, prefix.payload_bytes);
  put<std::uint32_t>(out, kCrcOffset, crc32c(header, crc32c(out.first<kCrcOffset>())));
}

Result<Prefix> decode_prefix(std::span<const std::byte, kPrefixBytes> bytes) {
  if (!std::equal(kMagic.begin(), kMagic.end(), bytes.begin()))
    return corrupt("bytes that are no frame of the Holmes protocol");
  Prefix prefix;
  prefix.version = get<std::uint16_t>(bytes, 4);
  if (prefix.version != kProtocolVersion)
    return Error(ErrorCode::kRefused, "protocol version " + std::to_string(prefix.version) +
                                          ", this program speaks version " +
                                          std::to_string(kProtocolVersion) +
                                          ": run the same release of Holmes on all hosts");
  const auto type = get<std::uint8_t>(bytes, 6);
  if (type > static_cast<std::uint8_t>(FrameType::kChunk) || bytes[7] != std::byte{0})
    return corrupt("a frame of unknown type " + std::to_string(type));
  prefix.type = static_cast<FrameType>(type);
  prefix.header_bytes = get<std::uint32_t>(bytes, 8);
  prefix.payload_bytes = get<std::uint32_t>(bytes, 12);
  if (prefix.header_bytes > kHeaderBytesMax)
    return corrupt("a frame header of " + std::to_string(prefix.header_bytes) + " bytes, at most " +
                   std::to_string(kHeaderBytesMax) + " allowed");
  const auto payload_max = payload_bytes_max(prefix.type);
  if (prefix.payload_bytes > payload_max)
    return corrupt("a frame payload of " + std::to_string(prefix.payload_bytes) +
                   " bytes, at most " + std::to_string(payload_max) + " allowed");
  return prefix;
}

bool crc_matches(std::span<const std::byte, kPrefixBytes> prefix,
                 std::span<const std::byte> header) {
  return get<std::uint32_t>(prefix, kCrcOffset) ==
         crc32c(header, crc32c(prefix.first<kCrcOffset>()));
}

}  // namespace holmes::transport::wire
