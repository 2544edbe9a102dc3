#pragma once

// What can be planned on other machines and trained on this one only.

#include <filesystem>

#include "holmes/base/result.hpp"

namespace holmes::actors {

/// kInvalidArgument with file, line and key for the first address that is not this machine's
/// loopback. `file` has been read without errors.
Status check_hosts_are_local(const std::filesystem::path& file);

}  // namespace holmes::actors
