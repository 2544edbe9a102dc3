#pragma once

// The GPT-2 architecture (Radford et al. 2019): learned positions, pre-norm blocks, GELU (tanh
// form), tied embedding. A pipeline stage runs a run of consecutive layers of it.

#include <cstdint>
#include <memory>
#include <vector>

#include "holmes/base/result.hpp"
#include "holmes/model/layer.hpp"

namespace holmes::model {

struct GptConfig {
  std::uint32_t layers = 6;
  std::uint32_t heads = 6;
  std::uint32_t channels = 384;
  std::uint32_t sequence = 256;           ///< Longest T, rows of the position table.
  std::uint32_t vocabulary = 256;         ///< Tokens that may occur.
  std::uint32_t vocabulary_padding = 64;  ///< The tables' rows are rounded up to a multiple of it.

  std::uint32_t padded_vocabulary() const {
    return (vocabulary + vocabulary_padding - 1) / vocabulary_padding * vocabulary_padding;
  }
  friend bool operator==(const GptConfig&, const GptConfig&) = default;
};

/// kInvalidArgument with the key and what would fit: heads that do not divide channels, zeros.
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
