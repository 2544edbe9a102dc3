#pragma once

// GPT-2 and Llama models in folders as Hugging Face's transformers read and write them:
// config.json, model.safetensors (or several files and model.safetensors.index.json), tokenizer
// files. Not a checkpoint (checkpoint.hpp): there is no optimizer state, and the tables of tokens
// have no padded rows. Values are blocking and for one thread at a time.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holmes/base/result.hpp"
#include "holmes/model/checkpoint.hpp"
#include "holmes/model/gpt.hpp"
#include "holmes/model/layer.hpp"
#include "holmes/model/safetensors.hpp"

namespace holmes::model {

/// Reads a config.json; `name` stands for the file in errors. kInvalidArgument for what is no GPT-2
/// or Llama as Holmes computes it (another activation, biases in Llama, another way to scale rotary
/// embeddings, a key that is not known), with the key and what would do; kCorrupt for what is no
/// JSON. Dropout is left out: Holmes trains without. vocabulary_padding is left at its default.
Result<GptConfig> parse_model_config(std::string_view text, const std::string& name);

/// A model in a folder; its files stay mapped as long as it lives.
class HuggingFaceModel {
 public:
  /// kNotFound: no such folder or file. kCorrupt: a file is damaged, or a tensor is missing or has
  /// another shape than config.json says. kInvalidArgument: another family, or a tensor that the
  /// family does not have, or a dtype other than F32, F16 and BF16.
  static Result<HuggingFaceModel> open(const std::filesystem::path& folder);
  HuggingFaceModel(HuggingFaceModel&&) noexcept;
  HuggingFaceModel& operator=(HuggingFaceModel&&) noexcept;
  ~HuggingFaceModel();

  const GptConfig& config() const;
  /// The dtype of its tensors, the widest if they differ.
  Dtype dtype() const;
  /// The flat fp32 array of a layer of a model with this config() but any vocabulary_padding: the
  /// padded rows of its tables become 0.
  Status read_layer(std::span<const ParameterSpec> parameters, std::span<float> values) const;

 private:
  struct State;
  explicit HuggingFaceModel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct ExportOptions {
  Dtype dtype = Dtype::kF32;  ///< kF32, kF16 or kBF16; rounded to nearest, ties to even.
  /// Tensors are gathered into files of about this size, which bounds the memory that is taken.
  std::uint64_t file_bytes = std::uint64_t{512} << 20;
};

struct Exported {
  std::uint64_t tensors = 0;
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;  ///< Of the safetensors files.
};

/// Writes the model of a checkpoint, with its tokenizer's files, to `folder`, which must not exist
/// yet: it appears when it is whole. kInvalidArgument when the folder is there, or when a value
/// does not fit the dtype (names the tensor).
Result<Exported> export_hugging_face(const Checkpoint& checkpoint,
                                     const std::filesystem::path& folder,
                                     const ExportOptions& options = {});

}  // namespace holmes::model
