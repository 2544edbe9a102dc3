#pragma once

// Reads a configuration file whole.

#include <filesystem>
#include <string>

#include "holmes/base/result.hpp"

namespace holmes::actors {

/// The text of a regular file of at most limits::kConfigBytesMax. kInvalidArgument, since a file
/// that cannot be read was named wrongly.
Result<std::string> read_text_file(const std::filesystem::path& file);

}  // namespace holmes::actors
