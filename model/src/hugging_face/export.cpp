#include <nlohmann/json.hpp>

#include "checkpoint/file_writer.hpp"
#include "checkpoint/layout.hpp"
#include "checkpoint/manifest.hpp"
#include "gpt/parameters.hpp"
#include "holmes/model/hugging_face.hpp"
#include "hugging_face/convert.hpp"
#include "hugging_face/model_files.hpp"

namespace holmes::model {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string dtype_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF16:
      return "float16";
    case Dtype::kBF16:
      return "bfloat16";
    default:
      return "float32";
  }
}

struct Planned {
  Checkpoint::Parameter parameter;
  std::uint64_t bytes = 0;
};
/// Tensors of one file.
using Shard = std::vector<Planned>;

/// In the model's order, each file as full as `options` allow.
std::vector<Shard> plan_files(const Checkpoint& checkpoint, const ExportOptions& options) {
  const GptConfig& config = checkpoint.job().model;
  std::vector<Shard> shards(1);
  std::uint64_t filled = 0;
  for (auto parameter : checkpoint.parameters()) {
    if (is_token_table(parameter.name)) {
      parameter.shape[0] = config.vocabulary;
      parameter.count = parameter.shape[0] * parameter.shape[1];
    }
    const std::uint64_t bytes = parameter.count * element_bytes(options.dtype);
    if (!shards.back().empty() && filled + bytes > options.file_bytes) {
      shards.emplace_back();
      filled = 0;
    }
    filled += bytes;
    shards.back().push_back({std::move(parameter), bytes});
  }
  return shards;
}

/// One tensor in the dtype it is written in.
Result<std::vector<std::byte>> converted(const Checkpoint& checkpoint,
                                         const Checkpoint::Parameter& parameter, Dtype dtype) {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  std::vector<std::byte> all;
  all.reserve(parameter.count * element_bytes(dtype));
  std::vector<float> values;
  std::vector<std::byte> piece;
  for (std::uint64_t first = 0; first < parameter.count; first += kPiece) {
    values.resize(std::min(kPiece, parameter.count - first));
    HOLMES_TRY(checkpoint.read_parameters(parameter.name, first, values));
    if (!narrow(dtype, values, piece))
      return Error(ErrorCode::kInvalidArgument, "tensor " + parameter.name +
                                                    ": has values too large for " +
                                                    dtype_name(dtype) + "; choose bf16 or fp32");
    all.insert(all.end(), piece.begin(), piece.end());
  }
  return all;
}

Result<FileSummary> write_shard(const Checkpoint& checkpoint, const Shard& shard,
                                const fs::path& path, Dtype dtype) {
  std::vector<std::vector<std::byte>> contents;
  std::vector<TensorToWrite> tensors;
  for (const auto& [parameter, bytes] : shard) {
    HOLMES_TRY_ASSIGN(auto content, converted(checkpoint, parameter, dtype));
    contents.push_back(std::move(content));
    tensors.push_back({parameter.name, dtype, parameter.shape, contents.back()});
  }
  return write_safetensors(path, tensors, {{"format", "pt"}});
}

std::string config_text(const GptConfig& model, Dtype dtype,
                        std::optional<std::int32_t> end_of_document) {
  auto config = ordered_json::parse(encode_config(model));
  config["vocab_size"] = model.vocabulary;
  config["torch_dtype"] = dtype_name(dtype);
  config.erase("holmes");
  if (end_of_document) config["bos_token_id"] = config["eos_token_id"] = *end_of_document;
  return config.dump(2) + "\n";
}

/// Puts the tokenizer beside the model. Bytes need no file.
Status write_texts(const Checkpoint& checkpoint, const fs::path& folder, Dtype dtype) {
  const std::string& name = checkpoint.job().tokenizer;
  std::optional<std::int32_t> end;
  if (name != kNoTokenizer) {
    HOLMES_TRY_ASSIGN(const auto tokenizer, find_tokenizer(name, checkpoint.folder()));
    end = tokenizer->end_of_document();
    for (const auto& file : tokenizer->files())
      HOLMES_TRY(write_file(folder / file.name, file.content));
  }
  HOLMES_TRY(
      write_file(folder / kHuggingFaceConfig, config_text(checkpoint.job().model, dtype, end)));
  return {};
}

Result<Exported> write_all(const Checkpoint& checkpoint, const fs::path& folder,
                           const ExportOptions& options) {
  const auto shards = plan_files(checkpoint, options);
  const auto count = static_cast<std::uint32_t>(shards.size());
  std::map<std::string, std::string> file_of;
  std::uint64_t tensor_bytes = 0;
  Exported result;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string name = count == 1 ? kHuggingFaceModel : part_name(kModelPart, {i, count});
    HOLMES_TRY_ASSIGN(const auto file,
                      write_shard(checkpoint, shards[i], folder / name, options.dtype));
    result.bytes += file.bytes;
    for (const auto& [parameter, bytes] : shards[i]) {
      file_of[parameter.name] = name;
      tensor_bytes += bytes;
      ++result.tensors;
      result.parameters += parameter.count;
    }
  }
  if (count > 1)
    HOLMES_TRY(write_file(folder / kHuggingFaceIndex, encode_index(file_of, tensor_bytes)));
  HOLMES_TRY(write_texts(checkpoint, folder, options.dtype));
  return result;
}

}  // namespace

Result<Exported> export_hugging_face(const Checkpoint& checkpoint, const fs::path& folder,
                                     const ExportOptions& options) {
  auto whole = folder.lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();  // "model/"
  auto unfinished = whole;
  unfinished += kUnfinishedSuffix;
  std::error_code failed;
  for (const auto& path : {whole, unfinished})
    if (fs::exists(path, failed))
      return Error(ErrorCode::kInvalidArgument,
                   path.string() + " is there already; choose another folder, or remove it");
  fs::create_directories(unfinished, failed);
  if (failed) return system_error("cannot make " + unfinished.string(), failed.value());
  auto result = write_all(checkpoint, unfinished, options);
  if (result) fs::rename(unfinished, whole, failed);
  if (result && !failed) return result;
  const int why = failed.value();
  fs::remove_all(unfinished, failed);
  if (!result) return result;
  return system_error("cannot make " + whole.string(), why);
}

}  // namespace holmes::model
