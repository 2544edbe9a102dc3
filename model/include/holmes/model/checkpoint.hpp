#pragma once

// Checkpoints: folders ROOT/step-00000100 that hold everything a job needs to go on, bit for bit,
// at any later layout, in files that other programs read too:
//   config.json                          the model, with Hugging Face's keys of its family
//   model-00001-of-0000N.safetensors     parameters, one file for each pipeline stage
//   model.safetensors.index.json         which of them holds which tensor
//   optimizer-00001-of-0000M.safetensors moments, one file for each owner of shards: runs of
//                                        elements "exp_avg:h.3.mlp.c_fc.weight:65536+65536" (first
//                                        element + count), so that no layout is written down
//   manifest.json                        format, step, job constants, parameters, size and hash of
//                                        each safetensors file
//   tokenizer.json, or vocab.json and merges.txt   where the job has such a tokenizer
// Tables of tokens are stored with their padded rows (config.json's vocab_size counts them; the
// tokens in use stand under "holmes"), a tied one once. Copies of tied tensors are never written;
// they are read from the tensor they copy.
//
// A folder is written as step-00000100.tmp and renamed when whole: what has the final name is
// whole. Values are blocking and for one thread; several processes write their parts at the same
// time.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "holmes/base/ids.hpp"
#include "holmes/base/result.hpp"
#include "holmes/model/gpt.hpp"
#include "holmes/model/layer.hpp"
#include "holmes/model/safetensors.hpp"
#include "holmes/model/tokenizer.hpp"

namespace holmes::model {

/// What a job fixes at its first step: with other values a checkpoint could not be gone on from
/// exactly.
struct JobConstants {
  GptConfig model;
  std::uint64_t seed = 0;
  std::uint32_t batch = 0;
  std::uint32_t micro_batch = 0;
  std::uint32_t sequence = 0;
  std::uint32_t reduction_leaves = 0;
  std::string tokenizer;  ///< Tokenizer::name(), or "none".
  double validation = 0;  ///< Share of the text kept from training: it shapes the sample order.
  std::string data_hash;
  std::string isa;  ///< Instruction set of the kernels, which decides the bits.
  friend bool operator==(const JobConstants&, const JobConstants&) = default;
};

/// kInvalidArgument with the first constant that differs, and both its values.
Status check_same_job(const JobConstants& checkpoint, const JobConstants& job);

/// All parameters of one layer.
struct LayerValues {
  std::span<const ParameterSpec> parameters;
  std::span<const float> values;  ///< The layer's flat array.
};

/// AdamW's moments for a run of elements of one layer's flat array; parts of it that belong to a
/// tied copy are passed over.
struct MomentValues {
  std::span<const ParameterSpec> parameters;
  std::size_t first = 0;  ///< In the layer's flat array.
  std::span<const float> exp_avg;
  std::span<const float> exp_avg_sq;
};

/// File `index` (from 0) of `count`.
struct PartNumber {
  std::uint32_t index = 0;
  std::uint32_t count = 1;
};

/// Writes one checkpoint. Values are written straight from the spans.
/// kOutOfResources when the disk is full: older checkpoints stay as they are.
class CheckpointWriter {
 public:
  /// Makes ROOT/step-N.tmp, empty: before any other process joins, or where there is no other.
  /// `step`: updates done, so that this is the next step to run.
  static Result<CheckpointWriter> begin(const std::filesystem::path& root, Step step);
  /// For one of several processes that write parts, in any order: makes the folder if it is not
  /// there yet. What an earlier, interrupted writer left in it is replaced or deleted in the end.
  static Result<CheckpointWriter> join(const std::filesystem::path& root, Step step);

  Result<FileSummary> write_model_part(PartNumber part, std::span<const LayerValues> layers) const;
  Result<FileSummary> write_optimizer_part(PartNumber part,
                                           std::span<const MomentValues> moments) const;

  /// Once all parts are written, with all their summaries: checks that they hold each tensor and
  /// each moment once, writes the other files, forces all to disk, renames; then deletes older
  /// checkpoints beyond the newest `keep`, and what interrupted writers left. Returns the folder.
  /// On an error the unfinished folder is deleted. `tokenizer`: files that are put beside it.
  Result<std::filesystem::path> publish(const JobConstants& job, std::span<const FileSummary> files,
                                        std::uint32_t keep,
                                        std::span<const TokenizerFile> tokenizer = {}) const;
  /// Deletes the unfinished folder.
  void abandon() const;

 private:
  CheckpointWriter(std::filesystem::path root, Step step);
  std::filesystem::path root_;
  Step step_;
  std::filesystem::path unfinished_;
};

/// Deletes what interrupted writers left in `root`: before a job starts to write there.
void discard_unfinished(const std::filesystem::path& root);

/// An entry of `root` that is neither a checkpoint nor what an interrupted writer left, if any:
/// whoever deletes `root` would delete something of somebody else's.
std::optional<std::filesystem::path> find_foreign(const std::filesystem::path& root);

/// The newest folder of `root` that has a manifest, by step. kNotFound when there is none.
Result<std::filesystem::path> find_latest(const std::filesystem::path& root);

struct CheckpointOptions {
  /// When given, a checkpoint of another job is refused (check_same_job).
  const JobConstants* job = nullptr;
  /// Also reads every file and compares its hash.
  bool verify_hashes = false;
};

/// A checkpoint that can be read; files stay mapped as long as it lives.
class Checkpoint {
 public:
  struct Parameter {
    std::string name;
    std::vector<std::uint64_t> shape;
    std::uint64_t count = 0;
    friend bool operator==(const Parameter&, const Parameter&) = default;
  };

  /// kNotFound: no checkpoint there. kInvalidArgument: of another job or a newer format.
  /// kCorrupt: a file is missing, cut short or changed; says which, and which tensor.
  static Result<Checkpoint> open(const std::filesystem::path& folder,
                                 const CheckpointOptions& options = {});
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  const std::filesystem::path& folder() const;
  /// Updates done: the next step to run.
  Step step() const;
  const JobConstants& job() const;
  const std::vector<Parameter>& parameters() const;

  /// Elements [first, first + out.size()) of a tensor, from whichever files hold them.
  Status read_parameters(std::string_view name, std::uint64_t first, std::span<float> out) const;
  Status read_moments(std::string_view name, std::uint64_t first, std::span<float> exp_avg,
                      std::span<float> exp_avg_sq) const;

  /// The flat array of a whole layer, tied copies included. kInvalidArgument when a shape differs.
  Status read_layer(std::span<const ParameterSpec> parameters, std::span<float> values) const;
  /// Moments of elements [first, first + exp_avg.size()) of a layer's flat array; those of tied
  /// copies, which have none, become 0.
  Status read_layer_moments(std::span<const ParameterSpec> parameters, std::size_t first,
                            std::span<float> exp_avg, std::span<float> exp_avg_sq) const;

 private:
  struct State;
  explicit Checkpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace holmes::model
