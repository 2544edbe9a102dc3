#pragma once

// Text of unknown origin (arguments, file names, bytes of a peer) made fit for a terminal and for
// one line of a log.

#include <string>
#include <string_view>

namespace holmes::launcher {

/// `text` with control characters and bytes that are not UTF-8 written as \n, \t, \x1b and so on.
std::string printable(std::string_view text);

/// `text` as one word of a POSIX shell's command line: quoted where it has to be.
std::string shell_word(std::string_view text);

}  // namespace holmes::launcher
