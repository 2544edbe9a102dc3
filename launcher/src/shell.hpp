#pragma once

// Words and commands for a POSIX shell.

#include <string>

namespace holmes::launcher {

/// `word` so that a shell takes it for one word as it is.
std::string shell_quoted(const std::string& word);

/// What a shell command prints within 10 s; empty when it fails.
std::string output_of(const std::string& command);

}  // namespace holmes::launcher
