#pragma once

// `holmes security issue`: certificates as files, for agents that others start.

#include <cstdint>
#include <filesystem>
#include <string>

#include "console.hpp"

namespace holmes::launcher {

struct SecurityCommand {
  std::string job;
  std::string hosts;  ///< A hostfile or a list.
  std::filesystem::path folder;
  std::uint32_t days = 30;
};

/// Writes a folder for the coordinator and one for each host; the authority's key is not kept.
int security(const SecurityCommand& command, Console& console);

}  // namespace holmes::launcher
