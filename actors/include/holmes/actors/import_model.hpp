#pragma once

// Makes a model that exists the beginning of a job.

#include <filesystem>

#include "holmes/actors/job_config.hpp"
#include "holmes/base/result.hpp"

namespace holmes::actors {

/// Writes the model in `folder` (Hugging Face's layout, see model/hugging_face.hpp) as the job's
/// checkpoint of step 0, with moments of 0, so that the job goes on from it like from any other
/// checkpoint. Holds one layer in memory. Returns the checkpoint's folder.
/// kInvalidArgument: the job's [model] or tokenizer is another one (says what to set), or the run
/// folder has checkpoints already; else what reading and writing may give. Blocking; any thread.
Result<std::filesystem::path> import_model(const JobConfig& job,
                                           const std::filesystem::path& folder);

}  // namespace holmes::actors
