#include "cpu/compute_scope.hpp"
#include "cpu/gemm.hpp"
#include "cpu/layers.hpp"
#include "kernels/kernels.hpp"

namespace holmes::model {
namespace {

class CpuEngine final : public Engine {
 public:
  std::unique_ptr<Layer> make_embedding(const GptConfig& config,
                                        const MicroBatchShape& shape) override {
    return std::make_unique<cpu::EmbeddingLayer>(config, shape);
  }
  std::unique_ptr<Layer> make_block(const GptConfig& config, const MicroBatchShape& shape,
                                    std::uint32_t index) override {
    if (config.family == Family::kGpt2)
      return std::make_unique<cpu::BlockLayer>(config, shape, index, workspace_);
    if (!rotary_ || !rotary_->is_for(config.rope, config.head_width(), shape.tokens))
      rotary_ = std::make_shared<const RotaryTable>(config.rope, config.head_width(), shape.tokens);
    return std::make_unique<cpu::LlamaBlockLayer>(config, shape, index, rotary_, workspace_);
  }
  std::unique_ptr<Layer> make_head(const GptConfig& config, const MicroBatchShape& shape) override {
    return std::make_unique<cpu::HeadLayer>(config, shape, workspace_);
  }
  void logits(const GptConfig& config, std::span<const float> parameters,
              std::span<const float> input, std::span<float> out) override;

 private:
  cpu::Workspace workspace_;
  std::shared_ptr<const RotaryTable> rotary_;  ///< Of the last Llama's blocks.
};

void CpuEngine::logits(const GptConfig& config, std::span<const float> parameters,
                       std::span<const float> input, std::span<float> out) {
  const cpu::ComputeScope scope;
  const std::size_t C = config.channels;
  const std::size_t rows = input.size() / C;
  const auto specs = model::head_parameters(config);
  HOLMES_ASSERT(input.size() == rows * C && out.size() == rows * config.vocabulary &&
                    parameters.size() == total_count(specs),
                "logits of another shape");
  const std::size_t line = cpu::Carver<float>::rounded(rows);
  workspace_.reserve(2 * line + input.size());
  float* mean = workspace_.floats().data();
  float* normal = mean + 2 * line;
  cpu::FinalNorm(config).forward(rows, parameters, input.data(), {mean, mean + line}, normal);
  cpu::multiply({rows, config.vocabulary, C}, {normal, C},
                {output_table(parameters, specs), C, true}, {out.data(), config.vocabulary});
}

}  // namespace

std::string instruction_set() {
  return kernels::best().name;
}

std::unique_ptr<Engine> make_cpu_engine() {
  return std::make_unique<CpuEngine>();
}

}  // namespace holmes::model
