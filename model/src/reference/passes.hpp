#pragma once

// Forward and backward of whole layers from the plain operators. See layer.hpp for the contract;
// here the arrays are pointers to T, so that gradient checks can run in double.

#include <algorithm>
#include <optional>
#include <vector>

#include "gpt/parameters.hpp"
#include "gpt/shape.hpp"
#include "reference/llama_ops.hpp"
#include "reference/ops.hpp"

namespace holmes::model::reference {

/// What a block's backward pass needs besides the block's input.
template <class T>
struct BlockStash {
  T* norm1;
  T* qkv;
  T* probabilities;
  T* attended;
  T* middle;  ///< The residual stream between attention and the feed-forward part.
  T* norm2;
  T* expanded;
  T* activated;

  static std::size_t count(const Dims& d) { return d.rows() * (15 * d.C + d.H * d.T); }
  BlockStash(const Dims& d, T* memory) {
    const std::size_t n = d.rows() * d.C;
    for (const auto& [pointer, size] : {std::pair{&norm1, n},
                                        {&qkv, 3 * n},
                                        {&probabilities, d.rows() * d.H * d.T},
                                        {&attended, n},
                                        {&middle, n},
                                        {&norm2, n},
                                        {&expanded, 4 * n},
                                        {&activated, 4 * n}}) {
      *pointer = memory;
      memory += size;
    }
  }
};

template <class T>
struct EmbeddingPass {
  Dims d;
  const std::vector<ParameterSpec>& specs;

  void forward(const T* parameters, const std::int32_t* tokens, T* y) const {
    const T* table = parameters + specs[kTokenTable].offset;
    for (std::size_t row = 0; row < d.rows(); ++row)
      for (std::size_t c = 0; c < d.C; ++c)
        y[row * d.C + c] = table[static_cast<std::size_t>(tokens[row]) * d.C + c];
    if (!has_positions()) return;
    const T* positions = parameters + specs[kPositionTable].offset;
    for (std::size_t row = 0; row < d.rows(); ++row)
      for (std::size_t c = 0; c < d.C; ++c) y[row * d.C + c] += positions[row % d.T * d.C + c];
  }
  void backward(const std::int32_t* tokens, const T* dy, T* gradients) const {
    T* table = gradients + specs[kTokenTable].offset;
    for (std::size_t row = 0; row < d.rows(); ++row)
      for (std::size_t c = 0; c < d.C; ++c)
        table[static_cast<std::size_t>(tokens[row]) * d.C + c] += dy[row * d.C + c];
    if (!has_positions()) return;
    T* positions = gradients + specs[kPositionTable].offset;
    for (std::size_t row = 0; row < d.rows(); ++row)
      for (std::size_t c = 0; c < d.C; ++c) positions[row % d.T * d.C + c] += dy[row * d.C + c];
  }
  bool has_positions() const { return specs.size() > kPositionTable; }
};

template <class T>
struct BlockPass {
  Dims d;
  const std::vector<ParameterSpec>& specs;

  void forward(const T* p, const T* x, T* memory, T* y) const {
    const BlockStash<T> s(d, memory);
    const std::size_t rows = d.rows();
    const std::size_t C = d.C;
    layer_norm(rows, C, x, at(p, kNorm1Weight), at(p, kNorm1Bias), s.norm1);
    linear(rows, C, 3 * C, s.norm1, at(p, kQkvWeight), at(p, kQkvBias), s.qkv);
    attention(d, s.qkv, s.probabilities, s.attended);
    linear(rows, C, C, s.attended, at(p, kProjectionWeight), at(p, kProjectionBias), s.middle);
    for (std::size_t i = 0; i < rows * C; ++i) s.middle[i] += x[i];
    layer_norm(rows, C, s.middle, at(p, kNorm2Weight), at(p, kNorm2Bias), s.norm2);
    linear(rows, C, 4 * C, s.norm2, at(p, kExpandWeight), at(p, kExpandBias), s.expanded);
    gelu(rows * 4 * C, s.expanded, s.activated);
    linear(rows, 4 * C, C, s.activated, at(p, kContractWeight), at(p, kContractBias), y);
    for (std::size_t i = 0; i < rows * C; ++i) y[i] += s.middle[i];
  }

  void backward(const T* p, const T* x, const T* memory, const T* dy, T* dx, T* g) const {
    const BlockStash<const T> s(d, memory);
    const std::size_t rows = d.rows();
    const std::size_t C = d.C;
    std::vector<T> dactivated(rows * 4 * C), dexpanded(rows * 4 * C), dnorm(rows * C);
    std::vector<T> dmiddle(dy, dy + rows * C), dattended(rows * C), dqkv(rows * 3 * C);
    linear_backward(rows, 4 * C, C, s.activated, at(p, kContractWeight), dy, dactivated.data(),
                    at(g, kContractWeight), at(g, kContractBias));
    gelu_backward(rows * 4 * C, s.expanded, dactivated.data(), dexpanded.data());
    linear_backward(rows, C, 4 * C, s.norm2, at(p, kExpandWeight), dexpanded.data(), dnorm.data(),
                    at(g, kExpandWeight), at(g, kExpandBias));
    layer_norm_backward(rows, C, s.middle, at(p, kNorm2Weight), dnorm.data(), dmiddle.data(),
                        at(g, kNorm2Weight), at(g, kNorm2Bias));
    linear_backward(rows, C, C, s.attended, at(p, kProjectionWeight), dmiddle.data(),
                    dattended.data(), at(g, kProjectionWeight), at(g, kProjectionBias));
    attention_backward(d, s.qkv, s.probabilities, dattended.data(), dqkv.data());
    linear_backward(rows, C, 3 * C, s.norm1, at(p, kQkvWeight), dqkv.data(), dnorm.data(),
                    at(g, kQkvWeight), at(g, kQkvBias));
    std::copy(dmiddle.begin(), dmiddle.end(), dx);
    layer_norm_backward(rows, C, x, at(p, kNorm1Weight), dnorm.data(), dx, at(g, kNorm1Weight),
                        at(g, kNorm1Bias));
  }

  const T* at(const T* flat, BlockTensor tensor) const { return flat + specs[tensor].offset; }
  T* at(T* flat, BlockTensor tensor) const { return flat + specs[tensor].offset; }
};

/// Of both families: GPT-2's final norm is a layer norm, Llama's an RMS norm.
template <class T>
struct HeadPass {
  Dims d;
  const std::vector<ParameterSpec>& specs;
  std::optional<double> rms_epsilon = std::nullopt;

  HeadPass(const GptConfig& config, const MicroBatchShape& shape,
           const std::vector<ParameterSpec>& tensors)
      : d(config, shape), specs(tensors) {
    if (config.family == Family::kLlama) rms_epsilon = config.norm_epsilon;
  }

  void norm(const T* p, std::size_t rows, const T* x, T* normal) const {
    const T* weight = p + specs[kFinalNormWeight].offset;
    if (rms_epsilon) return rms_norm(rows, d.C, x, weight, *rms_epsilon, normal);
    layer_norm(rows, d.C, x, weight, p + specs[kFinalNormBias].offset, normal);
  }

  void logits(const T* p, std::size_t rows, const T* x, T* normal, T* out) const {
    norm(p, rows, x, normal);
    const T* table = p + specs.back().offset;
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t v = 0; v < d.V; ++v) {
        double sum = 0;
        for (std::size_t c = 0; c < d.C; ++c)
          sum += double{normal[row * d.C + c]} * table[v * d.C + c];
        out[row * d.V + v] = static_cast<T>(sum);
      }
  }

  double forward(const T* p, const T* x, const std::int32_t* targets) const {
    std::vector<T> normal(d.rows() * d.C), scores(d.rows() * d.V);
    logits(p, d.rows(), x, normal.data(), scores.data());
    return cross_entropy(d.rows(), d.V, targets, scores.data(), 0);
  }

  void backward(const T* p, const T* x, const std::int32_t* targets, double loss_scale, T* dx,
                T* g) const {
    std::vector<T> normal(d.rows() * d.C), scores(d.rows() * d.V), dnormal(d.rows() * d.C);
    logits(p, d.rows(), x, normal.data(), scores.data());
    cross_entropy(d.rows(), d.V, targets, scores.data(), loss_scale);
    const T* table = p + specs.back().offset;
    T* dtable = g + specs.back().offset;
    for (std::size_t row = 0; row < d.rows(); ++row)
      for (std::size_t v = 0; v < d.V; ++v) {
        const T dscore = scores[row * d.V + v];
        for (std::size_t c = 0; c < d.C; ++c) {
          dnormal[row * d.C + c] += dscore * table[v * d.C + c];
          dtable[v * d.C + c] += dscore * normal[row * d.C + c];
        }
      }
    std::fill(dx, dx + d.rows() * d.C, T(0));
    const T* weight = p + specs[kFinalNormWeight].offset;
    T* dweight = g + specs[kFinalNormWeight].offset;
    if (rms_epsilon)
      return rms_norm_backward(d.rows(), d.C, x, weight, *rms_epsilon, dnormal.data(), dx, dweight);
    layer_norm_backward(d.rows(), d.C, x, weight, dnormal.data(), dx, dweight,
                        g + specs[kFinalNormBias].offset);
  }
};

}  // namespace holmes::model::reference
