#include "checkpoint/manifest.hpp"

#include <limits>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "checkpoint/dtype.hpp"
#include "checkpoint/layout.hpp"

namespace holmes::model {
namespace {

using nlohmann::ordered_json;

constexpr const char* kFormat = "holmes-checkpoint";
constexpr int kIndent = 1;

/// GPT-2 has no keys but those that it had before there were families.
ordered_json to_json(const GptConfig& model) {
  ordered_json object = {
      {"layers", model.layers},         {"heads", model.heads},
      {"channels", model.channels},     {"sequence", model.sequence},
      {"vocabulary", model.vocabulary}, {"vocabulary_padding", model.vocabulary_padding}};
  if (model.family == Family::kGpt2) return object;
  object["family"] = to_string(model.family);
  object["tied"] = model.tied();
  object["kv_heads"] = model.kv_head_count();
  object["head_channels"] = model.head_width();
  object["feed_forward"] = model.feed_forward_width();
  object["norm_epsilon"] = model.norm_epsilon;
  object["rope_theta"] = model.rope.theta;
  object["rope_factor"] = model.rope.factor;
  object["rope_low_factor"] = model.rope.low_factor;
  object["rope_high_factor"] = model.rope.high_factor;
  object["rope_original_sequence"] = model.rope.original_sequence;
  return object;
}

ordered_json to_json(const JobConstants& job) {
  return {{"model", to_json(job.model)}, {"seed", job.seed},
          {"batch", job.batch},          {"micro_batch", job.micro_batch},
          {"sequence", job.sequence},    {"reduction_leaves", job.reduction_leaves},
          {"tokenizer", job.tokenizer},  {"validation", job.validation},
          {"data_hash", job.data_hash},  {"isa", job.isa}};
}

/// Text that is not UTF-8 loses bytes rather than the checkpoint.
std::string written(const ordered_json& object) {
  return object.dump(kIndent, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

// The readers below throw; parse_manifest() is the seam that turns what they throw into an error.

const ordered_json& member(const ordered_json& object, const std::string& key) {
  if (!object.is_object() || !object.contains(key)) {
    throw std::invalid_argument("\"" + key + "\" is missing");
  }
  return object.at(key);
}

template <class T>
T number(const ordered_json& object, const std::string& key) {
  const auto& value = member(object, key);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::numeric_limits<T>::max()) {
    throw std::invalid_argument("\"" + key + "\" is no whole number in range");
  }
  return value.get<T>();
}

std::string text(const ordered_json& object, const std::string& key) {
  const auto& value = member(object, key);
  if (!value.is_string()) throw std::invalid_argument("\"" + key + "\" is no text");
  return value.get<std::string>();
}

const ordered_json& list(const ordered_json& object, const std::string& key) {
  const auto& value = member(object, key);
  if (!value.is_array()) throw std::invalid_argument("\"" + key + "\" is no list");
  return value;
}

double real(const ordered_json& object, const std::string& key) {
  const auto& value = member(object, key);
  if (!value.is_number()) throw std::invalid_argument("\"" + key + "\" is no number");
  return value.get<double>();
}

void read_llama(const ordered_json& object, GptConfig& model) {
  if (text(object, "family") != to_string(Family::kLlama))
    throw std::invalid_argument("\"family\" is neither gpt2 nor llama");
  model.family = Family::kLlama;
  const auto& tied = member(object, "tied");
  if (!tied.is_boolean()) throw std::invalid_argument("\"tied\" is neither true nor false");
  model.head = tied.get<bool>() ? Head::kTied : Head::kUntied;
  model.kv_heads = number<std::uint32_t>(object, "kv_heads");
  model.head_channels = number<std::uint32_t>(object, "head_channels");
  model.feed_forward = number<std::uint32_t>(object, "feed_forward");
  model.norm_epsilon = real(object, "norm_epsilon");
  model.rope.theta = real(object, "rope_theta");
  model.rope.factor = real(object, "rope_factor");
  model.rope.low_factor = real(object, "rope_low_factor");
  model.rope.high_factor = real(object, "rope_high_factor");
  model.rope.original_sequence = number<std::uint32_t>(object, "rope_original_sequence");
}

GptConfig read_model(const ordered_json& object) {
  GptConfig model;
  model.layers = number<std::uint32_t>(object, "layers");
  model.heads = number<std::uint32_t>(object, "heads");
  model.channels = number<std::uint32_t>(object, "channels");
  model.sequence = number<std::uint32_t>(object, "sequence");
  model.vocabulary = number<std::uint32_t>(object, "vocabulary");
  model.vocabulary_padding = number<std::uint32_t>(object, "vocabulary_padding");
  if (object.contains("family")) read_llama(object, model);
  if (const auto valid = validate(model); !valid) {
    throw std::invalid_argument(valid.error().message());
  }
  return model;
}

JobConstants read_job(const ordered_json& object) {
  JobConstants job;
  job.model = read_model(member(object, "model"));
  job.seed = number<std::uint64_t>(object, "seed");
  job.batch = number<std::uint32_t>(object, "batch");
  job.micro_batch = number<std::uint32_t>(object, "micro_batch");
  job.sequence = number<std::uint32_t>(object, "sequence");
  job.reduction_leaves = number<std::uint32_t>(object, "reduction_leaves");
  job.tokenizer = text(object, "tokenizer");
  job.validation = real(object, "validation");
  job.data_hash = text(object, "data_hash");
  job.isa = text(object, "isa");
  return job;
}

Checkpoint::Parameter read_parameter(const ordered_json& object) {
  Checkpoint::Parameter parameter;
  parameter.name = text(object, "name");
  for (const auto& extent : list(object, "shape")) {
    if (!extent.is_number_unsigned()) throw std::invalid_argument("a shape has no whole numbers");
    parameter.shape.push_back(extent.get<std::uint64_t>());
  }
  const auto bytes = tensor_bytes(Dtype::kF32, parameter.shape);
  if (!bytes) throw std::invalid_argument("tensor " + parameter.name + " is too large");
  parameter.count = *bytes / sizeof(float);
  return parameter;
}

FileSummary read_file_summary(const ordered_json& object) {
  FileSummary file{text(object, "name"), number<std::uint64_t>(object, "bytes"),
                   text(object, "hash")};
  // Also keeps a forged manifest from naming files outside the folder.
  if (!parse_part_name(file.name)) {
    throw std::invalid_argument("\"" + file.name + "\" is no name of a checkpoint's file");
  }
  return file;
}

Manifest read_manifest(const ordered_json& object) {
  Manifest manifest;
  manifest.step = Step(number<std::uint64_t>(object, "step"));
  manifest.job = read_job(member(object, "job"));
  for (const auto& item : list(object, "parameters")) {
    manifest.parameters.push_back(read_parameter(item));
  }
  for (const auto& item : list(object, "files")) {
    manifest.files.push_back(read_file_summary(item));
  }
  return manifest;
}

Status check_version(const ordered_json& object, const std::string& name) {
  const auto version = capture([&] {
    if (text(object, "format") != kFormat) throw std::invalid_argument("another format");
    return number<std::uint64_t>(object, "version");
  });
  if (!version) {
    return Error(ErrorCode::kCorrupt,
                 name + " is no manifest of a checkpoint: " + version.error().message());
  }
  if (*version > kManifestVersion) {
    return Error(ErrorCode::kInvalidArgument,
                 name + ": the checkpoint has format version " + std::to_string(*version) +
                     ", this program reads up to " + std::to_string(kManifestVersion) +
                     "; use the program that wrote it, or a newer one");
  }
  return {};
}

std::string dotted(std::string pointer) {
  pointer.erase(0, 1);
  for (char& c : pointer) c = c == '/' ? '.' : c;
  return pointer;
}

Error another_machine(const std::string& theirs, const std::string& ours) {
  return Error(ErrorCode::kInvalidArgument,
               "it was made with the instruction set " + theirs + ", this machine's is " + ours +
                   ", so that results would differ in their bits; resume on a machine with " +
                   theirs);
}

Error another_job(const std::string& key, const ordered_json& theirs, const ordered_json& ours) {
  return Error(ErrorCode::kInvalidArgument,
               "it belongs to another job: its " + key + " is " + theirs.dump() +
                   ", this job's is " + ours.dump() +
                   "; resume with the job file it was made with, or choose another run.folder");
}

/// Programs that know only GPT-2 refuse other families.
std::uint32_t version_of(const Manifest& manifest) {
  return manifest.job.model.family == Family::kGpt2 ? 1 : kManifestVersion;
}

}  // namespace

Status check_same_job(const JobConstants& checkpoint, const JobConstants& job) {
  if (checkpoint.model.family != job.model.family)
    return another_job("model.family", to_string(checkpoint.model.family),
                       to_string(job.model.family));
  const auto theirs = to_json(checkpoint).flatten();
  const auto ours = to_json(job).flatten();
  for (const auto& [key, value] : theirs.items()) {
    if (value == ours.at(key)) continue;
    if (key == "/isa") return another_machine(checkpoint.isa, job.isa);
    return another_job(dotted(key), value, ours.at(key));
  }
  return {};
}

std::string encode(const Manifest& manifest) {
  ordered_json object = {{"format", kFormat},
                         {"version", version_of(manifest)},
                         {"step", manifest.step.value()},
                         {"job", to_json(manifest.job)}};
  auto& parameters = object["parameters"] = ordered_json::array();
  for (const auto& parameter : manifest.parameters) {
    parameters.push_back(
        ordered_json{{"name", parameter.name}, {"shape", parameter.shape}, {"dtype", "F32"}});
  }
  auto& files = object["files"] = ordered_json::array();
  for (const auto& file : manifest.files) {
    files.push_back(ordered_json{{"name", file.name}, {"bytes", file.bytes}, {"hash", file.hash}});
  }
  return written(object);
}

Result<Manifest> parse_manifest(std::string_view text, const std::string& name) {
  const auto object = capture([&] { return ordered_json::parse(text); });
  if (!object) {
    return Error(ErrorCode::kCorrupt, name + " is not valid JSON: " + object.error().message());
  }
  HOLMES_TRY(check_version(*object, name));
  auto manifest = capture([&] { return read_manifest(*object); });
  if (!manifest) return Error(ErrorCode::kCorrupt, name + ": " + manifest.error().message());
  return manifest;
}

std::string encode_index(const std::map<std::string, std::string>& file_of_tensor,
                         std::uint64_t bytes_total) {
  const ordered_json object = {{"metadata", {{"total_size", bytes_total}}},
                               {"weight_map", file_of_tensor}};
  return written(object);
}

}  // namespace holmes::model
