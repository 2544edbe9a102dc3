#include "tokenizer/byte_alphabet.hpp"

#include <array>

#include "holmes/base/assert.hpp"
#include "tokenizer/utf8.hpp"

namespace holmes::model {
namespace {

constexpr unsigned kBytes = 256;
constexpr char32_t kFirstOther = 0x100;

constexpr bool prints(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<char32_t, kBytes> character{};
  std::array<unsigned char, kBytes> byte_of_rank{};
  std::array<unsigned char, kBytes> other{};  ///< Bytes of U+0100 and the next ones.
  unsigned others = 0;
};

constexpr Alphabet make_alphabet() {
  Alphabet result;
  unsigned rank = 0;
  for (unsigned byte = 0; byte < kBytes; ++byte) {
    if (!prints(byte)) continue;
    result.character[byte] = byte;
    result.byte_of_rank[rank++] = static_cast<unsigned char>(byte);
  }
  for (unsigned byte = 0; byte < kBytes; ++byte) {
    if (prints(byte)) continue;
    result.character[byte] = kFirstOther + result.others;
    result.other[result.others++] = static_cast<unsigned char>(byte);
    result.byte_of_rank[rank++] = static_cast<unsigned char>(byte);
  }
  return result;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::string to_byte_alphabet(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    append_utf8(kAlphabet.character[static_cast<unsigned char>(c)], text);
  }
  return text;
}

std::optional<std::string> from_byte_alphabet(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const auto next = decode_utf8(text);
    if (next.length == 0) return std::nullopt;
    text.remove_prefix(next.length);
    if (next.value < kBytes && prints(next.value)) {
      bytes += static_cast<char>(next.value);
    } else if (next.value >= kFirstOther && next.value - kFirstOther < kAlphabet.others) {
      bytes += static_cast<char>(kAlphabet.other[next.value - kFirstOther]);
    } else {
      return std::nullopt;
    }
  }
  return bytes;
}

unsigned char byte_of_rank(unsigned index) {
  HOLMES_ASSERT(index < kBytes, "there are 256 bytes");
  return kAlphabet.byte_of_rank[index];
}

}  // namespace holmes::model
