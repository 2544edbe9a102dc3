#pragma once

// Starts one program as a child that dies with the thread that started it.

#include <filesystem>
#include <string>
#include <vector>

#include "holmes/base/result.hpp"
#include "run_folder.hpp"

namespace holmes::launcher {

struct Program {
  std::string executable;
  std::vector<std::string> arguments;  ///< From argv[0] on.
  std::filesystem::path output;        ///< Its stdout and stderr are appended to this file.
  /// What it reads from its standard input, by a pipe that nobody else sees; at most 64 KiB.
  std::string input = {};
};

/// The process id of the new child. It has its own process group, no signal blocked, and
/// none of this process's descriptors. The kernel kills it when the calling thread ends.
Result<int> spawn(const Program& program);

/// A descriptor that becomes readable once the process has ended; none where the kernel has no such
/// thing.
Descriptor watch_process(int pid);

}  // namespace holmes::launcher
