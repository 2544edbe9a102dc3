#pragma once

// The layers of the cpu engine. They keep references to the engine's workspace.

#include "cpu/workspace.hpp"
#include "gpt/layer_base.hpp"

namespace holmes::model::cpu {

class EmbeddingLayer final : public LayerBase {
 public:
  EmbeddingLayer(const GptConfig& config, const MicroBatchShape& shape);
  std::size_t stash_bytes() const override { return 0; }
  double forward_flops() const override { return 0; }
  void forward(const ForwardArgs& args) override;
  void backward(const BackwardArgs& args) override;
};

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

class HeadLayer final : public LayerBase {
 public:
  HeadLayer(const GptConfig& config, const MicroBatchShape& shape, Workspace& workspace);
  std::size_t stash_bytes() const override;
  double forward_flops() const override { return dims_.head_flops(); }
  void forward(const ForwardArgs& args) override;
  void backward(const BackwardArgs& args) override;

 private:
  Workspace& workspace_;
};

}  // namespace holmes::model::cpu
