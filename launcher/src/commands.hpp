#pragma once

// The short commands: plan, generate, and the list of keys. Each returns the exit code.

#include "cli.hpp"
#include "console.hpp"

namespace holmes::launcher {

int show_plan(const PlanCommand& command, Console& console);
int generate(const GenerateCommand& command, Console& console);
int show_keys(Console& console);

/// The checkpoint that a path means: itself, or the newest one of a run folder.
Result<std::filesystem::path> find_checkpoint(const std::filesystem::path& path);

}  // namespace holmes::launcher
