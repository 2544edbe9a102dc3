#include "cpu/layers.hpp"
#include "kernels/kernels.hpp"

namespace holmes::model::cpu {

EmbeddingLayer::EmbeddingLayer(const GptConfig& config, const MicroBatchShape& shape)
    : LayerBase({config, shape}, embedding_parameters(config)),
      has_positions_(config.family == Family::kGpt2) {}

void EmbeddingLayer::forward(const ForwardArgs& args) {
  check(Kind::kEmbedding, args);
  const float* table = tensor(args.parameters, specs_, kTokenTable);
  const float* positions =
      has_positions_ ? tensor(args.parameters, specs_, kPositionTable) : nullptr;
  for (std::size_t row = 0; row < dims_.rows(); ++row) {
    const auto token = static_cast<std::size_t>(args.tokens[row]);
    float* out = args.output.data() + row * dims_.C;
    std::copy_n(table + token * dims_.C, dims_.C, out);
    if (has_positions_) kernels::best().add(dims_.C, out, positions + row % dims_.T * dims_.C);
  }
}

void EmbeddingLayer::backward(const BackwardArgs& args) {
  check(Kind::kEmbedding, args);
  float* table = tensor(args.gradients, specs_, kTokenTable);
  float* positions = has_positions_ ? tensor(args.gradients, specs_, kPositionTable) : nullptr;
  // Ascending rows: where a token occurs twice, its gradients are added in the order of positions.
  for (std::size_t row = 0; row < dims_.rows(); ++row) {
    const auto token = static_cast<std::size_t>(args.tokens[row]);
    const float* gradient = args.output_gradient.data() + row * dims_.C;
    kernels::best().add(dims_.C, table + token * dims_.C, gradient);
    if (has_positions_) kernels::best().add(dims_.C, positions + row % dims_.T * dims_.C, gradient);
  }
}

}  // namespace holmes::model::cpu
