#pragma once

// The BatchSource of production: samples of a memory-mapped text.

#include <memory>

#include "batches.hpp"
#include "holmes/actors/job_config.hpp"
#include "holmes/model/data.hpp"

namespace holmes::actors {

/// `text` must outlive the source. kInvalidArgument when the text is too short for the job.
Result<std::unique_ptr<BatchSource>> make_text_batches(
    const JobConfig& job, std::shared_ptr<const model::TokenFile> text);

/// Opens the text or the tokens that the job names; kInvalidArgument also when the tokenizer has
/// more tokens than the model.
Result<std::shared_ptr<const model::TokenFile>> open_text(const JobConfig& job);

}  // namespace holmes::actors
