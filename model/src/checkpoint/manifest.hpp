#pragma once

// manifest.json and the two files for other programs, as text. No file is touched here.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "holmes/model/checkpoint.hpp"

namespace holmes::model {

/// A reader refuses what is newer than this. Version 2 has families of models.
constexpr std::uint64_t kManifestVersion = 2;

struct Manifest {
  Step step;
  JobConstants job;
  std::vector<Checkpoint::Parameter> parameters;
  std::vector<FileSummary> files;
};

std::string encode(const Manifest& manifest);
/// kCorrupt, or kInvalidArgument for a newer format; `name` stands for the file in errors.
Result<Manifest> parse_manifest(std::string_view text, const std::string& name);

/// Hugging Face's description of a model (model_config.cpp).
std::string encode_config(const GptConfig& model);
/// Hugging Face's list of which file holds which tensor.
std::string encode_index(const std::map<std::string, std::string>& file_of_tensor,
                         std::uint64_t bytes_total);

}  // namespace holmes::model
