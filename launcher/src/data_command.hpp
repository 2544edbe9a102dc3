#pragma once

// `holmes data`: tokens of texts, tokenizers learned from texts, and what is in a data set.

#include <cstdint>
#include <filesystem>
#include <string>

#include "console.hpp"
#include "holmes/base/clock.hpp"
#include "holmes/model/documents.hpp"

namespace holmes::launcher {

struct DataCommand {
  enum class Action : std::uint8_t { kBuild, kLearn, kInspect };
  Action action = Action::kBuild;
  model::DocumentSource source;
  std::filesystem::path out;  ///< PREFIX, or the tokenizer.json.
  std::string tokenizer = "bytes";
  std::uint32_t vocabulary = 8192;
  std::uint32_t threads = 0;
  bool append_end = true;
  bool overwrite = false;
  bool quiet = false;
  bool json = false;
};

/// Returns the exit code. On an error nothing half-written is left.
int data(const DataCommand& command, Console& console, const Clock& clock);

}  // namespace holmes::launcher
