#pragma once

// The layers of an engine on a device. Each operation reads and writes where its spans lie if the
// device can use that memory, and copies if not; intermediate results are the device's own.

#include "cuda/operators.hpp"
#include "gpt/layer_base.hpp"
#include "gpt/rotary.hpp"

namespace holmes::model::cuda {

class DeviceLayer : public LayerBase {
 public:
  DeviceLayer(Session& session, std::string name, Dims dims, std::vector<ParameterSpec> specs)
      : LayerBase(dims, std::move(specs)), session_(session), name_(std::move(name)) {}

 protected:
  Session& session_;
  const std::string name_;
};

/// Arguments of a forward pass on the device, for as long as it runs.
struct ForwardScope {
  Operation operation;  // last to go: waits when results are copied back
  Reads<float> parameters;
  Reads<float> input;
  Writes<float> output;
  Writes<float> stash;

  ForwardScope(Session& session, const std::string& name, const ForwardArgs& args);
};

struct BackwardScope {
  Operation operation;
  Reads<float> parameters;
  Reads<float> input;
  Reads<float> stash;
  Reads<float> output_gradient;
  Writes<float> input_gradient;
  Writes<float> gradients;

  BackwardScope(Session& session, const std::string& name, const BackwardArgs& args);
};

class EmbeddingLayer final : public DeviceLayer {
 public:
  EmbeddingLayer(Session& session, const GptConfig& config, const MicroBatchShape& shape);
  std::size_t stash_bytes() const override { return 0; }
  double forward_flops() const override { return 0; }
  void forward(const ForwardArgs& args) override;
  void backward(const BackwardArgs& args) override;

 private:
  const bool has_positions_;
};

/// GPT-2's.
class BlockLayer final : public DeviceLayer {
 public:
  BlockLayer(Session& session, const GptConfig& config, const MicroBatchShape& shape,
             std::uint32_t index);
  std::size_t stash_bytes() const override;
  double forward_flops() const override { return dims_.block_flops(); }
  void forward(const ForwardArgs& args) override;
  void backward(const BackwardArgs& args) override;

 private:
  Norm norm_of(const float* parameters, BlockTensor weight) const;
  Weight weight_of(const float* parameters, BlockTensor weight, std::size_t in,
                   std::size_t out) const;
  void attention_part(const ForwardScope& scope);
  void feed_forward(const ForwardScope& scope);
  void feed_forward_backward(const BackwardScope& scope, float* dmiddle);
  void attention_part_backward(const BackwardScope& scope, const float* dmiddle);
};

/// Angles on the device, shared by the blocks of a model.
struct DeviceRotary {
  RotaryTable table;
  MemoryPool::Loan cosines;
  MemoryPool::Loan sines;
};

class LlamaBlockLayer final : public DeviceLayer {
 public:
  LlamaBlockLayer(Session& session, const GptConfig& config, const MicroBatchShape& shape,
                  std::uint32_t index, std::shared_ptr<const DeviceRotary> rotary);
  std::size_t stash_bytes() const override;
  double forward_flops() const override { return dims_.block_flops(); }
  void forward(const ForwardArgs& args) override;
  void backward(const BackwardArgs& args) override;

 private:
  Norm norm_of(const float* parameters, LlamaBlockTensor weight) const;
  Weight weight_of(const float* parameters, LlamaBlockTensor weight, std::size_t in,
                   std::size_t out) const;
  void rotate(bool back, float* qkv) const;
  void attention_part(const ForwardScope& scope);
  void feed_forward(const ForwardScope& scope);
  void feed_forward_backward(const BackwardScope& scope, float* dmiddle);
  void attention_part_backward(const BackwardScope& scope, const float* dmiddle);

  const float epsilon_;
  const std::shared_ptr<const DeviceRotary> rotary_;
};

/// Final norm, output table and loss. Logits exist for a run of rows at a time and are computed
/// again in backward: all of them would be rows x vocabulary numbers for each micro-batch in
/// flight.
class HeadLayer final : public DeviceLayer {
 public:
  HeadLayer(Session& session, const GptConfig& config, const MicroBatchShape& shape);
  std::size_t stash_bytes() const override;
  double forward_flops() const override { return dims_.head_flops(); }
  void forward(const ForwardArgs& args) override;
  void backward(const BackwardArgs& args) override;
  /// Of `rows` rows, all on the device.
  void logits(std::size_t rows, const float* parameters, const float* input, float* out);

 private:
  Norm norm_of(const float* parameters) const;
  Weight table_of(const float* parameters) const;

  const bool is_rms_;
  const float epsilon_;
};

}  // namespace holmes::model::cuda
