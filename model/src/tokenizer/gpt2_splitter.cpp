// GPT-2's rule for pieces, by hand: categories of characters come from a table, and ASCII, which
// most text is, from a small one.
#include <array>

#include <utf8proc.h>

#include "tokenizer/splitter.hpp"
#include "tokenizer/utf8.hpp"

namespace holmes::model {

const std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

enum Kind : std::uint8_t { kOther, kLetter, kNumber, kSpace };

/// Unicode's White_Space above ASCII.
bool is_white_space(char32_t c) {
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

Kind kind_of(char32_t c) {
  if (is_white_space(c)) return kSpace;
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) return kLetter;
  if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO) return kNumber;
  return kOther;
}

constexpr Kind ascii_kind(unsigned c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return kLetter;
  if (c >= '0' && c <= '9') return kNumber;
  return c == ' ' || (c >= '\t' && c <= '\r') ? kSpace : kOther;
}

constexpr std::array<Kind, 128> kAscii = [] {
  std::array<Kind, 128> table{};
  for (unsigned c = 0; c < table.size(); ++c) table[c] = ascii_kind(c);
  return table;
}();

struct Character {
  Kind kind = kOther;
  unsigned length = 1;
};

Character character_at(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < kAscii.size()) return {kAscii[byte], 1};
  const auto next = decode_utf8(text.substr(at));
  return {kind_of(next.value), next.length};
}

/// The end of the run of characters of one kind that begins at `at`.
std::size_t run_end(std::string_view text, std::size_t at, Kind kind) {
  while (at < text.size()) {
    const Character next = character_at(text, at);
    if (next.kind != kind) break;
    at += next.length;
  }
  return at;
}

/// Bytes of a contraction such as 's or 'll; 0 when there is none.
std::size_t contraction(std::string_view text) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  const char c = text[1];
  if (c == 's' || c == 't' || c == 'm' || c == 'd') return 2;
  const auto two = text.substr(1, 2);
  return two == "re" || two == "ve" || two == "ll" ? 3 : 0;
}

/// White space, but for its last character where something follows that may take it along.
std::size_t space_piece(std::string_view text) {
  std::size_t end = 0;
  std::size_t last = 0;
  while (end < text.size()) {
    const Character next = character_at(text, end);
    if (next.kind != kSpace) break;
    last = end;
    end += next.length;
  }
  return end == text.size() || last == 0 ? end : last;
}

class Gpt2Rule final : public SplitRule {
 public:
  void split(std::string_view text, std::vector<std::size_t>& ends) const override {
    for (std::size_t at = 0; at < text.size(); ends.push_back(at)) {
      at += gpt2_piece(text.substr(at));
    }
  }
};

}  // namespace

std::size_t gpt2_piece(std::string_view text) {
  if (const auto length = contraction(text); length > 0) return length;
  const std::size_t at = text[0] == ' ' && text.size() > 1 ? 1 : 0;
  const Character first = character_at(text, at);
  if (first.kind == kSpace) return space_piece(text);
  return run_end(text, at + first.length, first.kind);
}

std::unique_ptr<SplitRule> make_gpt2_rule() {
  return std::make_unique<Gpt2Rule>();
}

}  // namespace holmes::model
