#include "cuda/layers.hpp"

namespace holmes::model::cuda {
namespace {

std::span<float> floats(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}
std::span<const float> floats(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

}  // namespace

ForwardScope::ForwardScope(Session& session, const std::string& name, const ForwardArgs& args)
    : operation(session, name + ", forward"),
      parameters(session, args.parameters),
      input(session, args.input),
      output(session, args.output),
      stash(session, floats(args.stash)) {}

BackwardScope::BackwardScope(Session& session, const std::string& name, const BackwardArgs& args)
    : operation(session, name + ", backward"),
      parameters(session, args.parameters),
      input(session, args.input),
      stash(session, floats(args.stash)),
      output_gradient(session, args.output_gradient),
      input_gradient(session, args.input_gradient),
      gradients(session, args.gradients, Writes<float>::Before::kKept) {}

EmbeddingLayer::EmbeddingLayer(Session& session, const GptConfig& config,
                               const MicroBatchShape& shape)
    : DeviceLayer(session, "embedding", {config, shape}, embedding_parameters(config)),
      has_positions_(config.family == Family::kGpt2) {}

void EmbeddingLayer::forward(const ForwardArgs& args) {
  check(Kind::kEmbedding, args);
  const ForwardScope scope(session_, name_, args);
  const Reads<std::int32_t> tokens(session_, args.tokens);
  const float* p = scope.parameters.data();
  if (!session_.status()) return;
  session_.launch(
      EmbedKernel{.rows = dims_.rows(),
                  .columns = dims_.C,
                  .positions = dims_.T,
                  .tokens = tokens.data(),
                  .table = p + specs_[kTokenTable].offset,
                  .position_table = has_positions_ ? p + specs_[kPositionTable].offset : nullptr,
                  .y = scope.output.data()});
}

void EmbeddingLayer::backward(const BackwardArgs& args) {
  check(Kind::kEmbedding, args);
  const Operation operation(session_, name_ + ", backward");  // needs no parameters: they are large
  const Reads<std::int32_t> tokens(session_, args.tokens);
  const Reads<float> dy(session_, args.output_gradient);
  const Writes<float> gradients(session_, args.gradients, Writes<float>::Before::kKept);
  if (!session_.status()) return;
  session_.launch(EmbedBackwardKernel{.rows = dims_.rows(),
                                      .columns = dims_.C,
                                      .tokens = tokens.data(),
                                      .dy = dy.data(),
                                      .table = gradients.data() + specs_[kTokenTable].offset});
  if (has_positions_)
    session_.launch(PositionsBackwardKernel{
        .samples = dims_.B,
        .positions = dims_.T,
        .columns = dims_.C,
        .dy = dy.data(),
        .position_table = gradients.data() + specs_[kPositionTable].offset});
}

}  // namespace holmes::model::cuda
