#pragma once

// The named tensors of each layer, in the order of their flat arrays.

#include <vector>

#include "holmes/model/gpt.hpp"

namespace holmes::model {

// Positions in the lists below, so that layers find their tensors.
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
enum HeadTensor { kFinalNormWeight, kFinalNormBias, kOutputTable };

constexpr float kNormEpsilon = 1e-5F;

std::vector<ParameterSpec> embedding_parameters(const GptConfig& config);
std::vector<ParameterSpec> block_parameters(const GptConfig& config, std::uint32_t index);
std::vector<ParameterSpec> head_parameters(const GptConfig& config);

/// Elements of the flat array.
std::size_t total_count(const std::vector<ParameterSpec>& parameters);

/// First element of tensor `index` in a layer's flat parameters or gradients.
template <class T>
T* tensor(std::span<T> flat, const std::vector<ParameterSpec>& parameters, std::size_t index) {
  return flat.data() + parameters[index].offset;
}

}  // namespace holmes::model
