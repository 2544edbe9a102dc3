#pragma once

// The named tensors of each layer, in the order of their flat arrays.

#include <string_view>
#include <vector>

#include "holmes/model/gpt.hpp"

namespace holmes::model {

// Positions in the lists below, so that layers find their tensors.
/// Positions: GPT-2 only.
enum EmbeddingTensor { kTokenTable, kPositionTable };
enum BlockTensor {
  kNorm1Weight,
  kNorm1Bias,
  kQkvWeight,
  kQkvBias,
  kProjectionWeight,
  kProjectionBias,
  kNorm2Weight,
  kNorm2Bias,
  kExpandWeight,
  kExpandBias,
  kContractWeight,
  kContractBias,
};
enum LlamaBlockTensor {
  kInputNorm,
  kQueryWeight,  ///< Begins one matrix with the next two.
  kKeyWeight,
  kValueWeight,
  kOutputWeight,
  kPostNorm,
  kGateWeight,  ///< Begins one matrix with the next.
  kUpWeight,
  kDownWeight,
};
/// Llama has no bias; the output table is the last tensor in both families.
enum HeadTensor { kFinalNormWeight, kFinalNormBias };

constexpr float kNormEpsilon = 1e-5F;  ///< Of GPT-2.

std::vector<ParameterSpec> embedding_parameters(const GptConfig& config);
std::vector<ParameterSpec> block_parameters(const GptConfig& config, std::uint32_t index);
std::vector<ParameterSpec> head_parameters(const GptConfig& config);

/// Whether a tensor of that name has a row for each token, and padded rows behind them.
bool is_token_table(std::string_view name);

/// Elements of the flat array.
std::size_t total_count(const std::vector<ParameterSpec>& parameters);

/// First element of tensor `index` in a layer's flat parameters or gradients.
template <class T>
T* tensor(std::span<T> flat, const std::vector<ParameterSpec>& parameters, std::size_t index) {
  return flat.data() + parameters[index].offset;
}

/// The same of a head's output table.
template <class T>
T* output_table(std::span<T> flat, const std::vector<ParameterSpec>& head) {
  return tensor(flat, head, head.size() - 1);
}

}  // namespace holmes::model
