#pragma once

// Credentials as texts and files: how they get to those whose they are. Keys go through pipes and
// files that nobody else can read; never onto a command line, into an environment or a log.
//
// Threads: plain functions, on the caller's thread.

#include <filesystem>
#include <string>

#include "holmes/base/credentials.hpp"
#include "holmes/base/result.hpp"

namespace holmes::launcher {

/// As one PEM text: key, certificate, authority.
std::string to_text(const Credentials& credentials);
/// What to_text() made. kInvalidArgument.
Result<Credentials> parse_credentials(std::string_view text);

/// "-": from standard input, within 30 s; else from a folder that write_credentials() has written.
/// kInvalidArgument: a key that others may read.
Result<Credentials> read_credentials(const std::string& source);

/// Makes `folder`, for its owner alone, with key.pem, certificate.pem and authority.pem in it.
/// kInvalidArgument: there are such files already.
Status write_credentials(const std::filesystem::path& folder, const Credentials& credentials);

}  // namespace holmes::launcher
