// What the planner must know of a GPT: floating-point operations and parameters, from its shape.

#include "holmes/actors/job_config.hpp"

namespace holmes::actors {

partition::ModelCost model_cost(const JobConfig& job) {
  const std::uint64_t channels = job.model.channels;
  const std::uint64_t tokens = job.train.sequence;
  const std::uint64_t vocabulary = job.model.padded_vocabulary();
  const auto c = static_cast<double>(channels);
  const auto t = static_cast<double>(tokens);
  partition::ModelCost cost;
  cost.blocks = job.model.layers;
  // Four matrices of C x C for attention, two of C x 4C behind it; scores and their use T x T x C.
  cost.block_flops = t * (24 * c * c + 4 * t * c);
  cost.embedding_flops = t * c;
  cost.head_flops = t * 2 * static_cast<double>(vocabulary) * c;
  cost.block_parameters = 12 * channels * channels + 13 * channels;
  // The embedding's table is a copy of the head's, which owns it.
  cost.embedding_parameters = (vocabulary + job.model.sequence) * channels;
  cost.head_parameters = vocabulary * channels + 2 * channels;
  cost.edge_bytes = tokens * channels * sizeof(float);
  cost.attention_flops = 4 * t * t * c;
  // What the CPU kernels keep; attention scores are computed again in any case.
  cost.block_stash_bytes =
      tokens * (9 * channels + 2 * std::uint64_t{job.model.heads} + 4) * sizeof(float);
  cost.block_selective_bytes = cost.block_stash_bytes;
  cost.head_stash_bytes = tokens * (vocabulary + 2) * sizeof(float);
  return cost;
}

}  // namespace holmes::actors
