#pragma once

// The StateStore of production: checkpoint folders under RUN/checkpoints.

#include <filesystem>
#include <memory>

#include "holmes/actors/job_config.hpp"
#include "holmes/model/checkpoint.hpp"
#include "state_store.hpp"

namespace holmes::actors {

/// What a checkpoint of this job records, and a checkpoint that it goes on from must equal.
/// `data_hash`: of the text.
/// kInvalidArgument or kCorrupt when the tokenizer cannot be read.
Result<model::JobConstants> job_constants(const JobConfig& job, std::string data_hash);

/// Folder that a job's checkpoints lie in.
std::filesystem::path checkpoint_root(const JobConfig& job);

/// Its checkpoints carry the job's tokenizer.
Result<std::unique_ptr<StateStore>> make_file_store(const JobConfig& job, std::string data_hash);

}  // namespace holmes::actors
