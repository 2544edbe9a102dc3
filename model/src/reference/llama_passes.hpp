#pragma once

// Forward and backward of Llama's blocks from the plain operators, as passes.hpp has them of GPT-2.

#include <algorithm>
#include <vector>

#include "reference/llama_ops.hpp"
#include "reference/passes.hpp"

namespace holmes::model::reference {

/// What a block's backward pass needs besides the block's input.
template <class T>
struct LlamaBlockStash {
  T* norm1;
  T* qkv;  ///< After the rotation.
  T* probabilities;
  T* attended;
  T* middle;  ///< The residual stream between attention and the feed-forward part.
  T* norm2;
  T* gated;
  T* activated;

  static std::size_t count(const Dims& d) {
    return d.rows() * (3 * d.C + d.qkv_width() + d.H * d.T + d.attended_width() + 3 * d.F);
  }
  LlamaBlockStash(const Dims& d, T* memory) {
    const std::size_t n = d.rows();
    for (const auto& [pointer, size] : {std::pair{&norm1, n * d.C},
                                        {&qkv, n * d.qkv_width()},
                                        {&probabilities, n * d.H * d.T},
                                        {&attended, n * d.attended_width()},
                                        {&middle, n * d.C},
                                        {&norm2, n * d.C},
                                        {&gated, n * 2 * d.F},
                                        {&activated, n * d.F}}) {
      *pointer = memory;
      memory += size;
    }
  }
};

template <class T>
struct LlamaBlockPass {
  Dims d;
  const std::vector<ParameterSpec>& specs;
  Rope rope;
  double epsilon;

  void forward(const T* p, const T* x, T* memory, T* y) const {
    const LlamaBlockStash<T> s(d, memory);
    const std::size_t rows = d.rows();
    const std::size_t C = d.C;
    rms_norm(rows, C, x, at(p, kInputNorm), epsilon, s.norm1);
    // The three matrices are one, as are gate and up.
    linear_transposed(rows, C, d.qkv_width(), s.norm1, at(p, kQueryWeight), s.qkv);
    rotate(d, rope, false, s.qkv);
    attention(d, s.qkv, s.probabilities, s.attended);
    linear_transposed(rows, d.attended_width(), C, s.attended, at(p, kOutputWeight), s.middle);
    for (std::size_t i = 0; i < rows * C; ++i) s.middle[i] += x[i];
    rms_norm(rows, C, s.middle, at(p, kPostNorm), epsilon, s.norm2);
    linear_transposed(rows, C, 2 * d.F, s.norm2, at(p, kGateWeight), s.gated);
    swiglu(rows, d.F, s.gated, s.activated);
    linear_transposed(rows, d.F, C, s.activated, at(p, kDownWeight), y);
    for (std::size_t i = 0; i < rows * C; ++i) y[i] += s.middle[i];
  }

  void backward(const T* p, const T* x, const T* memory, const T* dy, T* dx, T* g) const {
    const LlamaBlockStash<const T> s(d, memory);
    const std::size_t rows = d.rows();
    const std::size_t C = d.C;
    std::vector<T> dactivated(rows * d.F), dgated(rows * 2 * d.F), dnorm(rows * C);
    std::vector<T> dmiddle(dy, dy + rows * C), dattended(rows * d.attended_width());
    std::vector<T> dqkv(rows * d.qkv_width());
    linear_transposed_backward(rows, d.F, C, s.activated, at(p, kDownWeight), dy, dactivated.data(),
                               at(g, kDownWeight));
    swiglu_backward(rows, d.F, s.gated, dactivated.data(), dgated.data());
    linear_transposed_backward(rows, C, 2 * d.F, s.norm2, at(p, kGateWeight), dgated.data(),
                               dnorm.data(), at(g, kGateWeight));
    rms_norm_backward(rows, C, s.middle, at(p, kPostNorm), epsilon, dnorm.data(), dmiddle.data(),
                      at(g, kPostNorm));
    linear_transposed_backward(rows, d.attended_width(), C, s.attended, at(p, kOutputWeight),
                               dmiddle.data(), dattended.data(), at(g, kOutputWeight));
    attention_backward(d, s.qkv, s.probabilities, dattended.data(), dqkv.data());
    rotate(d, rope, true, dqkv.data());
    linear_transposed_backward(rows, C, d.qkv_width(), s.norm1, at(p, kQueryWeight), dqkv.data(),
                               dnorm.data(), at(g, kQueryWeight));
    std::copy(dmiddle.begin(), dmiddle.end(), dx);
    rms_norm_backward(rows, C, x, at(p, kInputNorm), epsilon, dnorm.data(), dx, at(g, kInputNorm));
  }

  const T* at(const T* flat, LlamaBlockTensor tensor) const { return flat + specs[tensor].offset; }
  T* at(T* flat, LlamaBlockTensor tensor) const { return flat + specs[tensor].offset; }
};

}  // namespace holmes::model::reference
