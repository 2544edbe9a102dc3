#include <algorithm>
#include <cstring>
#include <set>

#include "gpt/parameters.hpp"
#include "holmes/base/assert.hpp"
#include "holmes/model/hugging_face.hpp"
#include "hugging_face/convert.hpp"
#include "hugging_face/model_files.hpp"

namespace holmes::model {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHead = "lm_head.weight";

std::string written(std::span<const std::uint64_t> shape) {
  std::string text;
  for (const auto extent : shape) text += (text.empty() ? "" : " x ") + std::to_string(extent);
  return text.empty() ? "a single number" : text;
}

/// Masks and frequencies that older versions of transformers stored; they follow from the model.
bool is_constant(Family family, std::string_view name) {
  if (family == Family::kLlama)
    return name.starts_with("model.layers.") && name.ends_with(".self_attn.rotary_emb.inv_freq");
  return name.starts_with("h.") &&
         (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"));
}

bool is_float(Dtype dtype) {
  return dtype == Dtype::kF32 || dtype == Dtype::kF16 || dtype == Dtype::kBF16;
}

}  // namespace

struct HuggingFaceModel::State {
  fs::path folder;
  GptConfig config;
  ModelFiles files;
  Dtype dtype = Dtype::kBF16;

  Error bad(ErrorCode code, std::string_view tensor, const std::string& what) const {
    return Error(code, folder.string() + ": tensor " + std::string(tensor) + ": " + what);
  }
  Status check(const ParameterSpec& spec);
  Status check_others(const std::set<std::string, std::less<>>& known) const;
};

/// A table may have more rows than there are tokens, never fewer.
Status HuggingFaceModel::State::check(const ParameterSpec& spec) {
  const auto* tensor = files.find(spec.name);
  if (tensor == nullptr) return bad(ErrorCode::kCorrupt, spec.name, "is in none of its files");
  const auto& info = *tensor->info;
  if (!is_float(info.dtype))
    return bad(
        ErrorCode::kInvalidArgument, spec.name,
        "has dtype " + std::string(to_string(info.dtype)) + "; F32, F16 and BF16 can be read");
  std::vector<std::uint64_t> wanted(spec.shape.begin(), spec.shape.end());
  const bool is_table = is_token_table(spec.name);
  if (is_table) wanted[0] = config.vocabulary;
  const bool fits =
      is_table ? info.shape.size() == 2 && info.shape[0] >= wanted[0] && info.shape[1] == wanted[1]
               : info.shape == wanted;
  if (!fits)
    return bad(ErrorCode::kCorrupt, spec.name,
               "is " + written(info.shape) + ", config.json makes it " + written(wanted));
  if (dtype != Dtype::kF32 && info.dtype != dtype)
    dtype = dtype == Dtype::kBF16 && info.dtype == Dtype::kF16 ? Dtype::kF16 : Dtype::kF32;
  return {};
}

Status HuggingFaceModel::State::check_others(
    const std::set<std::string, std::less<>>& known) const {
  for (const auto& [name, tensor] : files.tensors()) {
    if (known.contains(name) || is_constant(config.family, name)) continue;
    if (name != kHead)
      return bad(
          ErrorCode::kInvalidArgument, name,
          std::string(config.family == Family::kGpt2 ? "GPT-2" : "Llama") + " has no such tensor");
    // A tied head may be stored too.
    const std::string table_name = layer_parameters(config, 0).front().name;
    const auto& table = *files.find(table_name);
    const auto ours = table.file->bytes(*table.info);
    const auto theirs = tensor.file->bytes(*tensor.info);
    if (!std::ranges::equal(ours, theirs))
      return bad(ErrorCode::kInvalidArgument, name,
                 "is another matrix than " + table_name +
                     (config.family == Family::kGpt2
                          ? "; only models whose head is tied to the table of tokens can be read"
                          : "; set \"tie_word_embeddings\" to false in config.json to use it"));
  }
  return {};
}

HuggingFaceModel::HuggingFaceModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
HuggingFaceModel::HuggingFaceModel(HuggingFaceModel&&) noexcept = default;
HuggingFaceModel& HuggingFaceModel::operator=(HuggingFaceModel&&) noexcept = default;
HuggingFaceModel::~HuggingFaceModel() = default;

Result<HuggingFaceModel> HuggingFaceModel::open(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    return Error(ErrorCode::kNotFound, folder.string() +
                                           ": no such folder; name one with a config.json and a "
                                           "model.safetensors");
  auto state = std::make_unique<State>();
  state->folder = folder;
  const auto path = folder / kHuggingFaceConfig;
  HOLMES_TRY_ASSIGN(const auto text, read_small_file(path));
  HOLMES_TRY_ASSIGN(state->config, parse_model_config(text, path.string()));
  HOLMES_TRY_ASSIGN(state->files, ModelFiles::open(folder));
  std::set<std::string, std::less<>> known;
  for (std::uint32_t number = 0; number <= state->config.layers + 1; ++number)
    for (const auto& spec : layer_parameters(state->config, number)) {
      known.insert(spec.name);
      HOLMES_TRY(state->check(spec));
    }
  HOLMES_TRY(state->check_others(known));
  return HuggingFaceModel(std::move(state));
}

const GptConfig& HuggingFaceModel::config() const {
  return state_->config;
}

Dtype HuggingFaceModel::dtype() const {
  return state_->dtype;
}

Status HuggingFaceModel::read_layer(std::span<const ParameterSpec> parameters,
                                    std::span<float> values) const {
  for (const auto& spec : parameters) {
    const auto* tensor = state_->files.find(spec.name);
    HOLMES_ASSERT(tensor != nullptr, "every tensor was looked at when the folder was opened");
    auto out = values.subspan(spec.offset, spec.count);
    if (is_token_table(spec.name)) {
      const auto used = std::size_t{state_->config.vocabulary} * spec.shape[1];
      HOLMES_ASSERT(used <= out.size(), "the table has room for all tokens");
      std::ranges::fill(out.subspan(used), 0.0F);
      out = out.first(used);
    }
    widen(tensor->info->dtype, tensor->file->bytes(*tensor->info), 0, out);
  }
  return {};
}

}  // namespace holmes::model
