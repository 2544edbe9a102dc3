#pragma once

// Sizes of a layer's arrays, and what a forward pass costs.

#include "holmes/model/gpt.hpp"

namespace holmes::model {

struct Dims {
  std::size_t B = 0;   ///< Samples.
  std::size_t T = 0;   ///< Tokens of a sample.
  std::size_t C = 0;   ///< Channels.
  std::size_t H = 0;   ///< Heads.
  std::size_t G = 0;   ///< Heads of keys and values: H / G consecutive heads share one.
  std::size_t D = 0;   ///< Channels of a head.
  std::size_t F = 0;   ///< Width of the feed-forward part.
  std::size_t V = 0;   ///< Tokens that may occur; rows beyond it in the tables are padding.
  bool gated = false;  ///< Two matrices lead into the feed-forward part.

  Dims(const GptConfig& config, const MicroBatchShape& shape)
      : B(shape.samples),
        T(shape.tokens),
        C(config.channels),
        H(config.heads),
        G(config.kv_head_count()),
        D(config.head_width()),
        F(config.feed_forward_width()),
        V(config.vocabulary),
        gated(config.family == Family::kLlama) {}

  std::size_t rows() const { return B * T; }
  /// Columns of what attention reads, a row: queries of all heads, then keys, then values.
  std::size_t qkv_width() const { return (H + 2 * G) * D; }
  std::size_t key_column(std::size_t head) const { return (H + head / (H / G)) * D; }
  std::size_t value_column(std::size_t head) const { return key_column(head) + G * D; }
  /// Columns of what it gives.
  std::size_t attended_width() const { return H * D; }

  /// Two for each multiply-and-add; attention counted without its mask.
  double block_flops() const {
    const std::size_t weights = C * (qkv_width() + attended_width()) + (gated ? 3 : 2) * C * F;
    return static_cast<double>(rows()) *
           static_cast<double>(2 * weights + 4 * T * attended_width());
  }
  double head_flops() const {
    return 2 * static_cast<double>(rows()) * static_cast<double>(C) * static_cast<double>(V);
  }
};

}  // namespace holmes::model
