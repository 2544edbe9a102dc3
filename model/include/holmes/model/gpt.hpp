#pragma once

// Decoder-only transformers of two families, both with pre-norm blocks:
//   GPT-2 (Radford et al. 2019): learned positions, layer norms, biases, GELU (tanh form), tied
//   head; Llama (Touvron et al. 2023): rotary embeddings, RMS norms, no biases, SwiGLU, heads that
//   share keys and values in groups (Ainslie et al. 2023), untied or tied head.
// A pipeline stage runs a run of consecutive layers of one.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "holmes/base/buffer.hpp"
#include "holmes/base/result.hpp"
#include "holmes/model/layer.hpp"
#include "holmes/model/optimizer.hpp"

namespace holmes::model {

enum class Family : std::uint8_t { kGpt2, kLlama };
/// "gpt2", "llama".
std::string_view to_string(Family family);

/// Whether the output table is the table of tokens (tied) or a matrix of its own.
enum class Head : std::uint8_t {
  kDefault,  ///< The family's own: tied in GPT-2, untied in Llama.
  kTied,
  kUntied,
};

/// Rotary embeddings (Su et al. 2021): channel pair i of D turns by theta^(-2i/D) a position. With
/// a factor above 1 slow turns are slowed down further, as Llama 3.1 does for longer texts: those
/// with less than low_factor turns over original_sequence by the factor, those with more than
/// high_factor not at all, and what lies between by something between.
struct Rope {
  double theta = 10000;
  double factor = 1;
  double low_factor = 1;
  double high_factor = 4;
  std::uint32_t original_sequence = 8192;
  friend bool operator==(const Rope&, const Rope&) = default;
};

struct GptConfig {
  std::uint32_t layers = 6;
  std::uint32_t heads = 6;
  std::uint32_t channels = 384;
  std::uint32_t sequence = 256;           ///< Longest T; GPT-2: rows of the position table.
  std::uint32_t vocabulary = 256;         ///< Tokens that may occur.
  std::uint32_t vocabulary_padding = 64;  ///< The tables' rows are rounded up to a multiple of it.
  Family family = Family::kGpt2;
  Head head = Head::kDefault;

  // Llama only.
  std::uint32_t kv_heads = 0;       ///< Heads of keys and values, which divide heads; 0: heads.
  std::uint32_t head_channels = 0;  ///< 0: channels / heads.
  std::uint32_t feed_forward = 0;   ///< 0: 8/3 of channels, rounded up to a multiple of 256.
  double norm_epsilon = 1e-5;
  Rope rope = {};

  // What holds where the value above is 0 or kDefault.
  bool tied() const;
  std::uint32_t kv_head_count() const { return kv_heads == 0 ? heads : kv_heads; }
  std::uint32_t head_width() const { return head_channels == 0 ? channels / heads : head_channels; }
  std::uint32_t feed_forward_width() const;
  std::uint32_t padded_vocabulary() const {
    return (vocabulary + vocabulary_padding - 1) / vocabulary_padding * vocabulary_padding;
  }
  friend bool operator==(const GptConfig&, const GptConfig&) = default;
};

/// kInvalidArgument with the key and what would fit: heads that do not divide channels, zeros, keys
/// of another family.
Status validate(const GptConfig& config);

/// Which layers of the model a stage has: [embedding] blocks first..last [head].
struct LayerRange {
  bool embedding = false;
  std::uint32_t first_block = 0;
  std::uint32_t block_count = 0;
  bool head = false;
};
/// All layers of the model.
LayerRange whole_model(const GptConfig& config);

/// B and T of every micro-batch of a job.
struct MicroBatchShape {
  std::uint32_t samples = 0;
  std::uint32_t tokens = 0;
};

/// Computes the layers' operators and owns their scratch memory: one for each device. Used by one
/// thread at a time, any one.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::unique_ptr<Layer> make_embedding(const GptConfig& config,
                                                const MicroBatchShape& shape) = 0;
  virtual std::unique_ptr<Layer> make_block(const GptConfig& config, const MicroBatchShape& shape,
                                            std::uint32_t index) = 0;
  virtual std::unique_ptr<Layer> make_head(const GptConfig& config,
                                           const MicroBatchShape& shape) = 0;
  /// Logits of the next token for each of n positions, for generation and tests: `input` is what
  /// the head gets there (n x C), `out` n x vocabulary (without padding).
  virtual void logits(const GptConfig& config, std::span<const float> head_parameters,
                      std::span<const float> input, std::span<float> out) = 0;

  /// Whether it computes such a model: kInvalidArgument with the key and what would fit.
  virtual Status supports(const GptConfig&) const { return {}; }
  /// A device's first failure, which stays: all results since then are worthless, and nothing more
  /// is computed. Says what failed, where, and what to do.
  virtual Status status() const { return {}; }
  /// What results have the same bits on: "avx512", "cuda sm_90".
  virtual std::string arithmetic() const;
  /// Where buffers for its layers should lie; null: anywhere. Spans that lie elsewhere are right as
  /// well, but slow.
  virtual std::shared_ptr<BufferMemory> memory() { return nullptr; }
  /// Where what comes from other hosts, or goes there, should lie: the host's memory, in a kind
  /// from which a device copies fast; null: where memory() is.
  virtual std::shared_ptr<BufferMemory> payload_memory() { return nullptr; }

  // Element-wise work on gradients and optimizer state, where they lie. Here, on the CPU.
  virtual void clear(std::span<float> values);
  virtual void add(std::span<float> destination, std::span<const float> source);
  /// Of each chunk of `values`, as sum_of_squares() takes it.
  virtual void sums_of_squares(std::span<const float> values, std::span<const Chunk> chunks,
                               std::span<double> sums);
  virtual void adamw(const AdamW& config, const AdamWStep& step, const AdamWArrays& arrays);
};

/// The instruction set that this machine's kernels use ("avx512"): results have the same bits only
/// where it is the same.
std::string instruction_set();

/// To be called first on a thread that computes layers: libraries use one thread from there on.
/// (Exact mode needs it, since a sum cut for two threads has other bits.)
void prepare_compute_thread();

/// oneDNN and vectorised kernels, one thread. While a layer computes, asynchronous signals to its
/// thread wait (oneDNN's kernels do not survive a handler on their stack).
std::unique_ptr<Engine> make_cpu_engine();
/// Plain loops in double-checked order: the oracle of the tests, slow.
std::unique_ptr<Engine> make_reference_engine();

/// The layers of `range`, in order. The engine must outlive them.
std::vector<std::unique_ptr<Layer>> make_layers(const GptConfig& config, const LayerRange& range,
                                                const MicroBatchShape& shape, Engine& engine);

/// Number of a layer in the whole model: embedding 0, block i is i + 1, head is layers + 1.
std::vector<std::uint32_t> layer_numbers(const GptConfig& config, const LayerRange& range);

/// Tensors of the layer with that number, as its parameters() would list them.
std::vector<ParameterSpec> layer_parameters(const GptConfig& config, std::uint32_t number);

/// Fills a layer's flat array with initial values that depend on (seed, tensor name, element) only,
/// so that every process computes the same ones whatever the layout. A tied copy gets the values of
/// the tensor it copies.
void initialise(const std::vector<ParameterSpec>& parameters, std::uint64_t seed,
                std::span<float> values);

}  // namespace holmes::model
