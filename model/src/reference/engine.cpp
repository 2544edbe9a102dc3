#include "gpt/layer_base.hpp"
#include "reference/llama_passes.hpp"
#include "reference/passes.hpp"

namespace holmes::model {
namespace {

class ReferenceEmbedding final : public LayerBase {
 public:
  ReferenceEmbedding(const GptConfig& config, const MicroBatchShape& shape)
      : LayerBase({config, shape}, embedding_parameters(config)) {}
  std::size_t stash_bytes() const override { return 0; }
  double forward_flops() const override { return 0; }
  void forward(const ForwardArgs& args) override {
    check(Kind::kEmbedding, args);
    pass_.forward(args.parameters.data(), args.tokens.data(), args.output.data());
  }
  void backward(const BackwardArgs& args) override {
    check(Kind::kEmbedding, args);
    pass_.backward(args.tokens.data(), args.output_gradient.data(), args.gradients.data());
  }

 private:
  const reference::EmbeddingPass<float> pass_{dims_, specs_};
};

/// `Pass` computes; its arguments behind the tensors are `more`.
template <class Pass, class Stash>
class ReferenceBlock final : public LayerBase {
 public:
  template <class... More>
  ReferenceBlock(const GptConfig& config, const MicroBatchShape& shape, std::uint32_t index,
                 const More&... more)
      : LayerBase({config, shape}, block_parameters(config, index)),
        pass_{dims_, specs_, more...} {}
  std::size_t stash_bytes() const override { return sizeof(float) * Stash::count(dims_); }
  double forward_flops() const override { return dims_.block_flops(); }
  void forward(const ForwardArgs& args) override {
    check(Kind::kBlock, args);
    pass_.forward(args.parameters.data(), args.input.data(),
                  reinterpret_cast<float*>(args.stash.data()), args.output.data());
  }
  void backward(const BackwardArgs& args) override {
    check(Kind::kBlock, args);
    pass_.backward(args.parameters.data(), args.input.data(),
                   reinterpret_cast<const float*>(args.stash.data()), args.output_gradient.data(),
                   args.input_gradient.data(), args.gradients.data());
  }

 private:
  const Pass pass_;
};
using Gpt2Block = ReferenceBlock<reference::BlockPass<float>, reference::BlockStash<float>>;
using LlamaBlock =
    ReferenceBlock<reference::LlamaBlockPass<float>, reference::LlamaBlockStash<float>>;

class ReferenceHead final : public LayerBase {
 public:
  ReferenceHead(const GptConfig& config, const MicroBatchShape& shape)
      : LayerBase({config, shape}, head_parameters(config)), pass_(config, shape, specs_) {}
  std::size_t stash_bytes() const override { return 0; }
  double forward_flops() const override { return dims_.head_flops(); }
  void forward(const ForwardArgs& args) override {
    check(Kind::kHead, args);
    *args.loss = static_cast<float>(
        pass_.forward(args.parameters.data(), args.input.data(), args.targets.data()));
  }
  void backward(const BackwardArgs& args) override {
    check(Kind::kHead, args);
    pass_.backward(args.parameters.data(), args.input.data(), args.targets.data(),
                   double{args.loss_scale}, args.input_gradient.data(), args.gradients.data());
  }

 private:
  const reference::HeadPass<float> pass_;
};

class ReferenceEngine final : public Engine {
 public:
  std::unique_ptr<Layer> make_embedding(const GptConfig& config,
                                        const MicroBatchShape& shape) override {
    return std::make_unique<ReferenceEmbedding>(config, shape);
  }
  std::unique_ptr<Layer> make_block(const GptConfig& config, const MicroBatchShape& shape,
                                    std::uint32_t index) override {
    if (config.family == Family::kGpt2) return std::make_unique<Gpt2Block>(config, shape, index);
    return std::make_unique<LlamaBlock>(config, shape, index, config.rope, config.norm_epsilon);
  }
  std::unique_ptr<Layer> make_head(const GptConfig& config, const MicroBatchShape& shape) override {
    return std::make_unique<ReferenceHead>(config, shape);
  }
  void logits(const GptConfig& config, std::span<const float> head_parameters,
              std::span<const float> input, std::span<float> out) override {
    const std::size_t rows = input.size() / config.channels;
    HOLMES_ASSERT(out.size() == rows * config.vocabulary, "logits of another shape");
    const auto specs = model::head_parameters(config);
    std::vector<float> normal(input.size());
    const reference::HeadPass<float> pass(config, {}, specs);
    pass.logits(head_parameters.data(), rows, input.data(), normal.data(), out.data());
  }
};

}  // namespace

std::unique_ptr<Engine> make_reference_engine() {
  return std::make_unique<ReferenceEngine>();
}

}  // namespace holmes::model
