#pragma once

// The job as it runs, with --set and defaults, in the run folder: effective.toml and cluster.toml.
// `holmes train RUN/effective.toml --resume` goes on with exactly that.

#include <string>
#include <string_view>
#include <vector>

#include "holmes/actors/job_config.hpp"
#include "run_folder.hpp"

namespace holmes::launcher {

/// "train.lr = 0.003 -> 0.01" for each key that differs between two texts of actors::to_toml().
std::vector<std::string> changed_keys(std::string_view before, std::string_view now);

/// Writes both files. What the run that is continued had otherwise: empty for a fresh one.
Result<std::vector<std::string>> keep_effective(const RunFolder& folder,
                                                const actors::JobConfig& job);

}  // namespace holmes::launcher
