#pragma once

// Sizes of a layer's arrays, and what a forward pass costs.

#include "holmes/model/gpt.hpp"

namespace holmes::model {

struct Dims {
  std::size_t B = 0;  ///< Samples.
  std::size_t T = 0;  ///< Tokens of a sample.
  std::size_t C = 0;  ///< Channels.
  std::size_t H = 0;  ///< Heads.
  std::size_t V = 0;  ///< Tokens that may occur; rows beyond it in the tables are padding.

  Dims(const GptConfig& config, const MicroBatchShape& shape)
      : B(shape.samples),
        T(shape.tokens),
        C(config.channels),
        H(config.heads),
        V(config.vocabulary) {}

  std::size_t rows() const { return B * T; }
  std::size_t head_channels() const { return C / H; }

  /// Two for each multiply-and-add; attention counted without its mask.
  double block_flops() const {
    const auto c = static_cast<double>(C);
    return static_cast<double>(rows()) * (24 * c * c + 4 * static_cast<double>(T) * c);
  }
  double head_flops() const {
    return 2 * static_cast<double>(rows()) * static_cast<double>(C) * static_cast<double>(V);
  }
};

}  // namespace holmes::model
