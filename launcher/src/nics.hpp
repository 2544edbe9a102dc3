#pragma once

// `holmes nics`: the NICs of this machine, or of a recorded one, as a table or as JSON. NCCL's
// variables keep out what they would keep out of NCCL, and bring back what only the defaults left
// out.

#include <filesystem>
#include <optional>
#include <string>

#include "console.hpp"
#include "holmes/partition/nccl.hpp"

namespace holmes::launcher {

struct NicsCommand {
  bool all = false;
  bool json = false;
  std::filesystem::path root;  ///< A recorded machine; empty: this one.
  partition::NcclOverrides nccl = {};
  std::optional<std::string> gid_index = {};  ///< NCCL_IB_GID_INDEX.
};

int show_nics(const NicsCommand& command, Console& console);

}  // namespace holmes::launcher
