#include "tokenizer/utf8.hpp"

#include <cstdint>
#include <cstring>

namespace holmes::model {
namespace {

constexpr std::uint32_t kContinuationBits = 6;
constexpr std::uint32_t kContinuationMask = 0x3F;

/// Bytes of a character by its first one; 0 for a byte that begins none.
unsigned length_of(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xC2) return 0;
  if (first < 0xE0) return 2;
  if (first < 0xF0) return 3;
  return first < 0xF5 ? 4 : 0;
}

bool allowed(char32_t value, unsigned length) {
  constexpr char32_t kFirst[] = {0, 0, 0x80, 0x800, 0x10000};
  return value >= kFirst[length] && value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF);
}

}  // namespace

CodePoint decode_utf8(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return {first, 1};
  const unsigned length = length_of(first);
  if (length == 0 || text.size() < length) return {};
  char32_t value = first & (0xFFU >> (length + 1));
  for (unsigned i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0U) != 0x80U) return {};
    value = value << kContinuationBits | (byte & kContinuationMask);
  }
  if (!allowed(value, length)) return {};
  return {value, length};
}

void append_utf8(char32_t value, std::string& text) {
  const auto continuation = [&](unsigned index) {
    text += static_cast<char>(0x80 | (value >> (index * kContinuationBits) & kContinuationMask));
  };
  if (value < 0x80) {
    text += static_cast<char>(value);
    return;
  }
  const unsigned more = value < 0x800 ? 1 : value < 0x10000 ? 2 : 3;
  constexpr unsigned kLead[] = {0, 0xC0, 0xE0, 0xF0};
  text += static_cast<char>(kLead[more] | value >> (more * kContinuationBits));
  for (unsigned i = more; i-- > 0;) continuation(i);
}

std::size_t valid_prefix(std::string_view text) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080ULL;
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint64_t word = kHighBits;
    if (text.size() - at >= sizeof(word)) std::memcpy(&word, text.data() + at, sizeof(word));
    if ((word & kHighBits) == 0) {
      at += sizeof(word);
      continue;
    }
    const auto next = decode_utf8(text.substr(at));
    if (next.length == 0) break;
    at += next.length;
  }
  return at;
}

std::size_t broken_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && decode_utf8(text.substr(at)).length == 0) ++at;
  return at;
}

}  // namespace holmes::model
