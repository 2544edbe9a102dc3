#pragma once

// `holmes checkpoint`: what a model's files hold, and the way from and to Hugging Face's layout.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "console.hpp"
#include "holmes/partition/nccl.hpp"

namespace holmes::launcher {

struct CheckpointCommand {
  enum class Action : std::uint8_t { kInspect, kExport, kImport };
  Action action = Action::kInspect;
  std::filesystem::path from;  ///< Run folder, checkpoint, or Hugging Face's folder.
  std::filesystem::path to;    ///< Folder to write; import: the job file.
  std::vector<std::string> overrides;
  partition::NcclOverrides nccl;
  std::string dtype = "fp32";
  bool json = false;
};

/// Returns the exit code. On an error nothing half-written is left.
int checkpoint(const CheckpointCommand& command, Console& console);

}  // namespace holmes::launcher
