#include "holmes/actors/import_model.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "file_store.hpp"
#include "holmes/model/checkpoint.hpp"
#include "holmes/model/hugging_face.hpp"
#include "holmes/model/tokenizer.hpp"
#include "text_batches.hpp"

namespace holmes::actors {
namespace {

namespace fs = std::filesystem;

/// A key of [model] and the value that holds, as it is written in a job file.
using Fact = std::pair<const char*, std::string>;

std::string shortest(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

/// What the parameters and their meaning hang on.
std::vector<Fact> facts_of(const model::GptConfig& model, bool with_llama) {
  std::vector<Fact> facts = {
      {"family", "\"" + std::string(to_string(model.family)) + "\""},
      {"layers", std::to_string(model.layers)},
      {"heads", std::to_string(model.heads)},
      {"channels", std::to_string(model.channels)},
      {"sequence", std::to_string(model.sequence)},
      {"vocabulary", std::to_string(model.vocabulary)},
  };
  if (!with_llama) return facts;
  const std::vector<Fact> llama = {
      {"head", model.tied() ? "\"tied\"" : "\"untied\""},
      {"kv_heads", std::to_string(model.kv_head_count())},
      {"head_channels", std::to_string(model.head_width())},
      {"feed_forward", std::to_string(model.feed_forward_width())},
      {"norm_epsilon", shortest(model.norm_epsilon)},
      {"rope_theta", shortest(model.rope.theta)},
      {"rope_factor", shortest(model.rope.factor)},
      {"rope_low_factor", shortest(model.rope.low_factor)},
      {"rope_high_factor", shortest(model.rope.high_factor)},
      {"rope_original_sequence", std::to_string(model.rope.original_sequence)},
  };
  facts.insert(facts.end(), llama.begin(), llama.end());
  return facts;
}

/// Names every key that must change, so that nobody has to try again and again.
Status check_model(const model::GptConfig& job, const model::GptConfig& given,
                   const fs::path& folder) {
  const bool is_llama = given.family == model::Family::kLlama;
  const auto ours = facts_of(job, is_llama);
  const auto theirs = facts_of(given, is_llama);
  std::string wanted;
  for (std::size_t i = 0; i < ours.size(); ++i)
    if (ours[i] != theirs[i])
      wanted += (wanted.empty() ? "" : ", ") + std::string("model.") + theirs[i].first + " = " +
                theirs[i].second + " (the job has " + ours[i].second + ")";
  if (wanted.empty()) return {};
  return Error(ErrorCode::kInvalidArgument, "the job trains another model than the one in " +
                                                folder.string() + "; set " + wanted);
}

/// Tokens would mean other words. A model without a tokenizer that can be read is not checked.
Status check_tokenizer(const std::string& job, const fs::path& folder) {
  if (job == model::kNoTokenizer) return {};
  const auto given = model::make_tokenizer(folder.string());
  if (!given || job == (*given)->name()) return {};
  return Error(ErrorCode::kInvalidArgument, "the job's tokenizer is another one than that of " +
                                                folder.string() + "; set data.tokenizer to \"" +
                                                folder.string() + "\"");
}

Status check_no_checkpoint(const fs::path& root) {
  const auto latest = model::find_latest(root);
  if (!latest) return {};
  return Error(ErrorCode::kInvalidArgument, "the run folder has a checkpoint already, " +
                                                latest->string() + "; choose another run.folder");
}

/// One part for each layer.
Result<std::vector<model::FileSummary>> write_parts(const model::CheckpointWriter& writer,
                                                    const model::GptConfig& config,
                                                    const model::HuggingFaceModel& source) {
  const std::uint32_t count = config.layers + 2;
  std::vector<model::FileSummary> files;
  for (std::uint32_t number = 0; number < count; ++number) {
    const auto parameters = model::layer_parameters(config, number);
    const auto elements = parameters.back().offset + parameters.back().count;
    std::vector<float> values(elements);
    HOLMES_TRY(source.read_layer(parameters, values));
    const model::LayerValues layer{parameters, values};
    HOLMES_TRY_ASSIGN(auto file, writer.write_model_part({number, count}, {&layer, 1}));
    files.push_back(std::move(file));
    std::fill(values.begin(), values.end(), 0.0F);
    const model::MomentValues moments{parameters, 0, values, values};
    HOLMES_TRY_ASSIGN(file, writer.write_optimizer_part({number, count}, {&moments, 1}));
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

Result<fs::path> import_model(const JobConfig& job, const fs::path& folder) {
  HOLMES_TRY_ASSIGN(const auto source, model::HuggingFaceModel::open(folder));
  HOLMES_TRY(check_model(job.model, source.config(), folder));
  HOLMES_TRY_ASSIGN(const auto text, open_text(job));
  HOLMES_TRY_ASSIGN(const auto constants, job_constants(job, text->hash()));
  HOLMES_TRY(check_tokenizer(constants.tokenizer, folder));
  const auto root = checkpoint_root(job);
  HOLMES_TRY(check_no_checkpoint(root));
  std::unique_ptr<model::Tokenizer> tokenizer;
  if (constants.tokenizer != model::kNoTokenizer) {
    HOLMES_TRY_ASSIGN(tokenizer, model::make_tokenizer(job.data.tokenizer));
  }
  HOLMES_TRY_ASSIGN(const auto writer, model::CheckpointWriter::begin(root, Step(0)));
  const auto files = write_parts(writer, job.model, source);
  if (!files) {
    writer.abandon();
    return files.error();
  }
  std::span<const model::TokenizerFile> tokenizer_files;
  if (tokenizer) tokenizer_files = tokenizer->files();
  return writer.publish(constants, *files, job.run.keep, tokenizer_files);
}

}  // namespace holmes::actors
