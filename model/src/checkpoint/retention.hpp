#pragma once

// Which checkpoint folders there are, and which of them go.

#include <cstdint>
#include <filesystem>

#include "holmes/base/ids.hpp"

namespace holmes::model {

/// Deletes the checkpoints older than `published` but for the newest ones, so that `keep` remain
/// with it, and unfinished folders up to that step. Newer ones, which a resumed job may have
/// walked away from, are not ours to judge. A folder is renamed to an unfinished one first: being
/// interrupted leaves no half checkpoint under a final name.
void delete_old_checkpoints(const std::filesystem::path& root, Step published, std::uint32_t keep);

}  // namespace holmes::model
