#pragma once

// The parts that layers of both families are made of, on device memory.

#include "cuda/session.hpp"
#include "gpt/shape.hpp"

namespace holmes::model::cuda {

/// A norm's tensors and how it is taken. Without bias it is an RMS norm.
struct Norm {
  std::size_t columns;
  const float* weight;
  const float* bias;
  float epsilon;
};
/// What a norm keeps of each row; an RMS norm takes the mean as zero.
template <class T>
struct NormRows {
  T* mean;
  T* inverse;
};
struct NormGradients {
  float* weight;
  float* bias;
};

void norm(Session& session, const Norm& norm, std::size_t rows, const float* x,
          NormRows<float> kept, float* y);
/// y once more: the same bits.
void norm_again(Session& session, const Norm& norm, std::size_t rows, const float* x,
                NormRows<const float> kept, float* y);
struct NormPass {
  std::size_t rows;
  const float* x;
  NormRows<const float> kept;
  const float* dy;
  const float* residual;  ///< Added to dx; null: none.
  float* dx;
};
/// Sets dx, and adds to the gradients.
void norm_backward(Session& session, const Norm& norm, const NormPass& pass,
                   const NormGradients& gradients);

/// sums += the sum of y's rows.
void add_column_sums(Session& session, std::size_t rows, std::size_t columns, const float* y,
                     float* sums);

/// A matrix of parameters, as its family stores it.
struct Weight {
  std::size_t in;
  std::size_t out;
  const float* data;
  bool is_out_by_in;  ///< Llama's; GPT-2's is in x out.
};
/// y = x * weight + bias + added, where bias and added may be null.
void linear(Session& session, const Weight& weight, std::size_t rows, const float* x,
            const float* bias, const float* added, float* y);
/// dweight += x^T dy, or its transpose, as the weight is stored.
void linear_weight_gradient(Session& session, const Weight& weight, std::size_t rows,
                            const float* x, const float* dy, float* dweight);
/// dx = dy * weight^T.
void linear_input_gradient(Session& session, const Weight& weight, std::size_t rows,
                           const float* dy, float* dx);

template <class T>
struct AttentionKept {
  T* largest;
  T* inverse_sum;
};
void attention(Session& session, const Dims& dims, const float* qkv, AttentionKept<float> kept,
               float* y);
/// dqkv is overwritten; y is what forward gave.
void attention_backward(Session& session, const Dims& dims, const float* qkv,
                        AttentionKept<const float> kept, const float* y, const float* dy,
                        float* dqkv);

/// Sums of chunks of `values` (on the device), or of their squares, into host memory.
void chunk_sums(Session& session, std::span<const ChunkSumsKernel::Range> chunks,
                const float* values, bool squares, std::span<double> sums);

}  // namespace holmes::model::cuda
