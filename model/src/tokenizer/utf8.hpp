#pragma once

// UTF-8, strictly: no overlong forms, no surrogates, nothing above U+10FFFF.

#include <cstddef>
#include <string>
#include <string_view>

namespace holmes::model {

struct CodePoint {
  char32_t value = 0;
  unsigned length = 0;  ///< Bytes; 0 when the text does not begin with a whole character.
};
/// The first character of `text`, which is not empty.
CodePoint decode_utf8(std::string_view text);

void append_utf8(char32_t value, std::string& text);

/// Bytes of the longest beginning of `text` that is UTF-8.
std::size_t valid_prefix(std::string_view text);
/// Bytes of the longest beginning of `text` at none of which a character begins.
std::size_t broken_prefix(std::string_view text);

}  // namespace holmes::model
