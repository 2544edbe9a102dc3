#pragma once

// GPT-2's way to write bytes in JSON: each byte is a printable character. Bytes that print as they
// stand are themselves, the others are the characters from U+0100 on, in order of the bytes.

#include <optional>
#include <string>
#include <string_view>

namespace holmes::model {

/// Bytes as characters, in UTF-8.
std::string to_byte_alphabet(std::string_view bytes);
/// The bytes that `text` stands for, unless it has a character that stands for none.
std::optional<std::string> from_byte_alphabet(std::string_view text);
/// Byte number `index` (0 .. 255) in the alphabet's own order, in which the ids of bytes go.
unsigned char byte_of_rank(unsigned index);

}  // namespace holmes::model
