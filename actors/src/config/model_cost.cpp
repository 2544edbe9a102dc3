// What the planner must know of a model: floating-point operations and parameters, from its shape.

#include "holmes/actors/job_config.hpp"

namespace holmes::actors {

namespace {

/// Sizes of a block, by family.
struct BlockShape {
  std::uint64_t qkv = 0;       ///< Columns of queries, keys and values.
  std::uint64_t attended = 0;  ///< Columns of what attention gives.
  std::uint64_t weights = 0;   ///< Elements of all matrices.
  std::uint64_t vectors = 0;   ///< Elements of norms and biases.
  std::uint64_t stash = 0;     ///< Numbers that the CPU kernels keep of a token.
};

BlockShape block_shape(const model::GptConfig& model) {
  const std::uint64_t channels = model.channels;
  const std::uint64_t heads = model.heads;
  const std::uint64_t width = model.head_width();
  const std::uint64_t inner = model.feed_forward_width();
  const bool llama = model.family == model::Family::kLlama;
  BlockShape shape;
  shape.attended = heads * width;
  shape.qkv = (heads + 2 * std::uint64_t{model.kv_head_count()}) * width;
  shape.weights = channels * (shape.qkv + shape.attended) + (llama ? 3 : 2) * channels * inner;
  // Llama: two norms. GPT-2: two norms with biases, and biases of four matrices.
  shape.vectors = llama ? 2 * channels : 4 * channels + shape.qkv + 2 * channels + inner;
  // Attention scores are computed again in any case.
  shape.stash = shape.qkv + shape.attended + channels +
                (llama ? 2 * inner + 2 * heads + 2 : inner + 2 * heads + 4);
  return shape;
}

}  // namespace

partition::ModelCost model_cost(const JobConfig& job) {
  const std::uint64_t channels = job.model.channels;
  const std::uint64_t tokens = job.train.sequence;
  const std::uint64_t vocabulary = job.model.padded_vocabulary();
  const bool llama = job.model.family == model::Family::kLlama;
  const auto block = block_shape(job.model);
  const auto t = static_cast<double>(tokens);
  partition::ModelCost cost;
  cost.blocks = job.model.layers;
  cost.attention_flops = 4 * t * t * static_cast<double>(block.attended);
  cost.block_flops = 2 * t * static_cast<double>(block.weights) + cost.attention_flops;
  cost.embedding_flops = t * static_cast<double>(channels);
  cost.head_flops = t * 2 * static_cast<double>(vocabulary) * static_cast<double>(channels);
  cost.block_parameters = block.weights + block.vectors;
  // A tied table is a copy of the head's, which owns it; Llama has no positions.
  cost.embedding_parameters = (vocabulary + (llama ? 0 : job.model.sequence)) * channels;
  cost.head_parameters = vocabulary * channels + (llama ? 1 : 2) * channels;
  cost.tied_head = job.model.tied();
  cost.edge_bytes = tokens * channels * sizeof(float);
  cost.block_stash_bytes = tokens * block.stash * sizeof(float);
  cost.block_selective_bytes = cost.block_stash_bytes;
  cost.head_stash_bytes = tokens * (vocabulary + 2) * sizeof(float);
  return cost;
}

}  // namespace holmes::actors
