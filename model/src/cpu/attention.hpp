#pragma once

// Causal attention of all heads, in blocks of queries: scores exist for one block at a time and are
// computed again in backward, so that only two numbers for each query and head are kept.

#include "gpt/shape.hpp"

namespace holmes::model::cpu {

/// Kept for backward: B x H x T of each.
struct AttentionStatistics {
  float* largest;
  float* inverse_sum;
};
struct ConstAttentionStatistics {
  const float* largest;
  const float* inverse_sum;
};

/// Floats of scratch memory that forward and backward need.
std::size_t attention_scratch(const Dims& dims);

/// qkv is B x T x qkv_width(), y B x T x attended_width(). Heads that share keys and values read
/// them where they lie.
void attention(const Dims& dims, const float* qkv, AttentionStatistics statistics, float* scratch,
               float* y);
/// dqkv is overwritten, gradients of shared keys and values added up in the order of heads; y is
/// what forward gave.
void attention_backward(const Dims& dims, const float* qkv, ConstAttentionStatistics statistics,
                        const float* y, const float* dy, float* scratch, float* dqkv);

}  // namespace holmes::model::cpu
