#include "cpu/final_norm.hpp"

namespace holmes::model::cpu {

FinalNorm::FinalNorm(const GptConfig& config)
    : is_rms_(config.family == Family::kLlama),
      epsilon_(is_rms_ ? static_cast<float>(config.norm_epsilon) : kNormEpsilon),
      columns_(config.channels),
      specs_(head_parameters(config)) {}

void FinalNorm::forward(std::size_t rows, std::span<const float> parameters, const float* x,
                        kernels::RowStatistics statistics, float* y) const {
  const auto& kernel = kernels::best();
  const float* weight = tensor(parameters, specs_, kFinalNormWeight);
  if (is_rms_)
    return kernel.rms_norm(rows, columns_, x, weight, statistics.inverse_deviation, epsilon_, y);
  kernel.layer_norm(rows, columns_, x, weight, tensor(parameters, specs_, kFinalNormBias),
                    statistics, epsilon_, y);
}

void FinalNorm::again(std::size_t rows, std::span<const float> parameters, const float* x,
                      kernels::ConstRowStatistics statistics, float* y) const {
  const auto& kernel = kernels::best();
  const float* weight = tensor(parameters, specs_, kFinalNormWeight);
  if (is_rms_)
    return kernel.rms_norm_again(rows, columns_, x, weight, statistics.inverse_deviation, y);
  kernel.layer_norm_again(rows, columns_, x, weight, tensor(parameters, specs_, kFinalNormBias),
                          statistics, y);
}

void FinalNorm::backward(std::size_t rows, const BackwardArgs& args,
                         kernels::ConstRowStatistics statistics, const float* dy) const {
  kernels::NormBackward norm{.rows = rows,
                             .columns = columns_,
                             .x = args.input.data(),
                             .weight = tensor(args.parameters, specs_, kFinalNormWeight),
                             .statistics = statistics,
                             .dy = dy,
                             .residual = nullptr,
                             .dx = args.input_gradient.data(),
                             .dweight = tensor(args.gradients, specs_, kFinalNormWeight),
                             .dbias = nullptr};
  if (is_rms_) return kernels::best().rms_norm_backward(norm);
  norm.dbias = tensor(args.gradients, specs_, kFinalNormBias);
  kernels::best().layer_norm_backward(norm);
}

}  // namespace holmes::model::cpu
