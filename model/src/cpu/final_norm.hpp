#pragma once

// The norm before the output table: a layer norm in GPT-2, an RMS norm in Llama.

#include "gpt/parameters.hpp"
#include "kernels/kernels.hpp"

namespace holmes::model::cpu {

class FinalNorm {
 public:
  explicit FinalNorm(const GptConfig& config);

  /// `parameters` and `gradients` are the head's flat arrays. y and statistics are set.
  void forward(std::size_t rows, std::span<const float> parameters, const float* x,
               kernels::RowStatistics statistics, float* y) const;
  /// y once more, from kept statistics.
  void again(std::size_t rows, std::span<const float> parameters, const float* x,
             kernels::ConstRowStatistics statistics, float* y) const;
  void backward(std::size_t rows, const BackwardArgs& args, kernels::ConstRowStatistics statistics,
                const float* dy) const;

 private:
  const bool is_rms_;
  const float epsilon_;
  const std::size_t columns_;
  const std::vector<ParameterSpec> specs_;
};

}  // namespace holmes::model::cpu
