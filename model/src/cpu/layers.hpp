#pragma once

// The layers of the cpu engine. They keep references to the engine's workspace.

#include <memory>

#include "cpu/final_norm.hpp"
#include "cpu/workspace.hpp"
#include "gpt/layer_base.hpp"
#include "gpt/rotary.hpp"

namespace holmes::model::cpu {

class EmbeddingLayer final : public LayerBase {
 public:
  EmbeddingLayer(const GptConfig& config, const MicroBatchShape& shape);
  std::size_t stash_bytes() const override { return 0; }
  double forward_flops() const override { return 0; }
  void forward(const ForwardArgs& args) override;
  void backward(const BackwardArgs& args) override;

 private:
  const bool has_positions_;
};

/// Of GPT-2.
class BlockLayer final : public LayerBase {
 public:
  BlockLayer(const GptConfig& config, const MicroBatchShape& shape, std::uint32_t index,
             Workspace& workspace);
  std::size_t stash_bytes() const override;
  double forward_flops() const override { return dims_.block_flops(); }
  void forward(const ForwardArgs& args) override;
  void backward(const BackwardArgs& args) override;

 private:
  struct Backward;

  void attention_forward(const ForwardArgs& args);
  void feed_forward(const ForwardArgs& args);
  void feed_forward_backward(const BackwardArgs& args, const Backward& b);
  void attention_part_backward(const BackwardArgs& args, const Backward& b);

  Workspace& workspace_;
};

class LlamaBlockLayer final : public LayerBase {
 public:
  LlamaBlockLayer(const GptConfig& config, const MicroBatchShape& shape, std::uint32_t index,
                  std::shared_ptr<const RotaryTable> rotary, Workspace& workspace);
  std::size_t stash_bytes() const override;
  double forward_flops() const override { return dims_.block_flops(); }
  void forward(const ForwardArgs& args) override;
  void backward(const BackwardArgs& args) override;

 private:
  struct Scratch;

  void attention_forward(const ForwardArgs& args, const Scratch& b);
  void feed_forward(const ForwardArgs& args, const Scratch& b);
  void feed_forward_backward(const BackwardArgs& args, const Scratch& b);
  void attention_part_backward(const BackwardArgs& args, const Scratch& b);
  void rotate(bool back, float* qkv) const;

  const std::shared_ptr<const RotaryTable> rotary_;
  const float epsilon_;
  Workspace& workspace_;
};

/// Of both families.
class HeadLayer final : public LayerBase {
 public:
  HeadLayer(const GptConfig& config, const MicroBatchShape& shape, Workspace& workspace);
  std::size_t stash_bytes() const override;
  double forward_flops() const override { return dims_.head_flops(); }
  void forward(const ForwardArgs& args) override;
  void backward(const BackwardArgs& args) override;

 private:
  const FinalNorm norm_;
  Workspace& workspace_;
};

}  // namespace holmes::model::cpu
