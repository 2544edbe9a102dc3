#pragma once

// A layer of a model, as a stage runs it: parameters are one flat fp32 array, forward keeps what
// backward needs in a stash that the caller owns, backward adds to a flat gradient array of the
// same layout. Layers own no parameters, activations or gradients.
//
// Shapes: B samples of a micro-batch, T tokens of a sample, C channels, V vocabulary (padded).
// Activations between layers are B x T x C, row-major fp32.
//
// Threads: a layer belongs to one compute thread (that of its Engine).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace holmes::model {

/// One named tensor of a layer.
struct ParameterSpec {
  std::string name;                ///< As Hugging Face has it, e.g. "h.3.attn.c_attn.weight".
  std::vector<std::size_t> shape;  ///< As stored: GPT-2 {input, output}, Llama {output, input}.
  std::size_t offset = 0;          ///< First element in the layer's flat array.
  std::size_t count = 0;           ///< Elements.
  bool decay = false;              ///< Weight decay applies (matrices, not biases and norms).
  float init_stddev = 0;           ///< Initial values: normal with this deviation ...
  float init_value = 0;            ///< ... or, where the deviation is 0, this value.
  /// The embedding layer's copy of the head's tied matrix: it has a gradient of its own, which is
  /// added to the head's at the end of a step, and takes the head's updated values.
  bool tied_copy = false;
};

struct ForwardArgs {
  std::span<const float> parameters = {};
  std::span<const float> input = {};          ///< B*T*C; empty for the embedding.
  std::span<float> output = {};               ///< B*T*C; empty for the head.
  std::span<std::byte> stash = {};            ///< stash_bytes(); kept by the caller until backward.
  std::span<const std::int32_t> tokens = {};  ///< B*T; only the embedding reads them.
  std::span<const std::int32_t> targets = {};  ///< B*T; only the head reads them.
  float* loss = nullptr;  ///< Head: mean cross-entropy over the B*T targets, in nats.
};

struct BackwardArgs {
  std::span<const float> parameters = {};
  std::span<const float> input = {};  ///< The same values as in forward.
  std::span<const std::byte> stash = {};
  std::span<const float> output_gradient = {};  ///< B*T*C; empty for the head.
  std::span<float> input_gradient = {};         ///< B*T*C, overwritten; empty for the embedding.
  std::span<float> gradients = {};              ///< Flat, added to.
  std::span<const std::int32_t> tokens = {};
  std::span<const std::int32_t> targets = {};
  float loss_scale = 1;  ///< Head: gradient of the objective with respect to this mean loss.
};

class Layer {
 public:
  virtual ~Layer() = default;
  virtual const std::vector<ParameterSpec>& parameters() const = 0;
  /// Elements of the flat parameter array.
  virtual std::size_t parameter_count() const = 0;
  virtual std::size_t stash_bytes() const = 0;
  /// Floating-point operations of one forward pass over a micro-batch; backward costs twice that.
  virtual double forward_flops() const = 0;
  virtual void forward(const ForwardArgs& args) = 0;
  virtual void backward(const BackwardArgs& args) = 0;
};

}  // namespace holmes::model
