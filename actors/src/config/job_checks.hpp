#pragma once

// What must hold between keys, and the defaults that depend on other keys.

#include "config/config_keys.hpp"

namespace holmes::actors {

/// Fills defaults and checks everything that can be checked without starting anything. Errors
/// begin with the place of the key that is at fault.
Status check_job(Draft& draft);

/// The text exists, is a file and is not empty.
Status check_text(const Draft& draft);

/// Whether data.tokenizer is a path.
bool names_tokenizer_file(const JobConfig& job);

}  // namespace holmes::actors
