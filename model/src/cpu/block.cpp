#include "cpu/attention.hpp"
#include "cpu/compute_scope.hpp"
#include "cpu/gemm.hpp"
#include "cpu/layers.hpp"
#include "kernels/kernels.hpp"

namespace holmes::model::cpu {
namespace {

/// What backward needs besides the block's input: 9C + 2H + 4 floats a token. Outputs of norms and
/// of GELU are computed again instead.
template <class T>
struct Stash {
  T* mean1;
  T* inverse_deviation1;
  T* mean2;
  T* inverse_deviation2;
  T* largest;
  T* inverse_sum;
  T* qkv;
  T* attended;
  T* middle;  ///< The residual stream between attention and the feed-forward part.
  T* expanded;

  Stash(const Dims& d, T* memory) {
    Carver<T> carve(memory);
    for (T** each : {&mean1, &inverse_deviation1, &mean2, &inverse_deviation2})
      *each = carve.take(d.rows());
    for (T** each : {&largest, &inverse_sum}) *each = carve.take(d.rows() * d.H);
    qkv = carve.take(d.rows() * 3 * d.C);
    attended = carve.take(d.rows() * d.C);
    middle = carve.take(d.rows() * d.C);
    expanded = carve.take(d.rows() * 4 * d.C);
  }
  static std::size_t count(const Dims& d) {
    const auto rounded = Carver<T>::rounded;
    const std::size_t n = d.rows() * d.C;
    return 4 * rounded(d.rows()) + 2 * rounded(d.rows() * d.H) + rounded(3 * n) + 2 * rounded(n) +
           rounded(4 * n);
  }
};

Stash<float> stash_of(const Dims& d, const ForwardArgs& args) {
  return {d, reinterpret_cast<float*>(args.stash.data())};
}
Stash<const float> stash_of(const Dims& d, const BackwardArgs& args) {
  return {d, reinterpret_cast<const float*>(args.stash.data())};
}

/// dweight += x^T dy; dx = dy weight^T. The weight is in x out.
void linear_backward(std::size_t rows, std::size_t in, std::size_t out, const float* x,
                     const float* weight, const float* dy, float* dweight, float* dx) {
  multiply_add({in, out, rows}, {x, in, true}, {dy, out}, {dweight, out});
  multiply({rows, in, out}, {dy, out}, {weight, out, true}, {dx, in});
}

}  // namespace

/// Scratch of a backward pass; of a forward pass the first two and the scratch of attention.
struct BlockLayer::Backward {
  float* normal;     ///< rows x C: output of a norm.
  float* wide;       ///< rows x 4C: output of GELU, or the gradient of qkv.
  float* dwide;      ///< rows x 4C
  float* dnormal;    ///< rows x C
  float* dmiddle;    ///< rows x C
  float* dattended;  ///< rows x C
  float* attention;

  Backward(const Dims& d, std::span<float> memory) {
    Carver<float> carve(memory.data());
    const std::size_t n = d.rows() * d.C;
    normal = carve.take(n);
    wide = carve.take(4 * n);
    dwide = carve.take(4 * n);
    dnormal = carve.take(n);
    dmiddle = carve.take(n);
    dattended = carve.take(n);
    attention = carve.take(attention_scratch(d));
  }
  static std::size_t count(const Dims& d) {
    const auto rounded = Carver<float>::rounded;
    const std::size_t n = d.rows() * d.C;
    return 4 * rounded(n) + 2 * rounded(4 * n) + rounded(attention_scratch(d));
  }
};

BlockLayer::BlockLayer(const GptConfig& config, const MicroBatchShape& shape, std::uint32_t index,
                       Workspace& workspace)
    : LayerBase({config, shape}, block_parameters(config, index)), workspace_(workspace) {
  workspace_.reserve(Backward::count(dims_));
}

std::size_t BlockLayer::stash_bytes() const {
  return sizeof(float) * Stash<float>::count(dims_);
}

void BlockLayer::forward(const ForwardArgs& args) {
  check(Kind::kBlock, args);
  const ComputeScope scope;
  attention_forward(args);
  feed_forward(args);
}

void BlockLayer::attention_forward(const ForwardArgs& args) {
  const auto& kernel = kernels::best();
  const auto p = [&](BlockTensor t) { return tensor(args.parameters, specs_, t); };
  const Stash<float> s = stash_of(dims_, args);
  const Backward scratch(dims_, workspace_.floats());
  const std::size_t rows = dims_.rows();
  const std::size_t C = dims_.C;
  kernel.layer_norm(rows, C, args.input.data(), p(kNorm1Weight), p(kNorm1Bias),
                    {s.mean1, s.inverse_deviation1}, kNormEpsilon, scratch.normal);
  multiply({rows, 3 * C, C}, {scratch.normal, C}, {p(kQkvWeight), 3 * C}, {s.qkv, 3 * C});
  kernel.add_bias(rows, 3 * C, p(kQkvBias), s.qkv);
  attention(dims_, s.qkv, {s.largest, s.inverse_sum}, scratch.attention, s.attended);
  multiply({rows, C, C}, {s.attended, C}, {p(kProjectionWeight), C}, {s.middle, C});
  kernel.add_bias_and_residual(rows, C, p(kProjectionBias), args.input.data(), s.middle);
}

void BlockLayer::feed_forward(const ForwardArgs& args) {
  const auto& kernel = kernels::best();
  const auto p = [&](BlockTensor t) { return tensor(args.parameters, specs_, t); };
  const Stash<float> s = stash_of(dims_, args);
  const Backward scratch(dims_, workspace_.floats());
  const std::size_t rows = dims_.rows();
  const std::size_t C = dims_.C;
  float* y = args.output.data();
  kernel.layer_norm(rows, C, s.middle, p(kNorm2Weight), p(kNorm2Bias),
                    {s.mean2, s.inverse_deviation2}, kNormEpsilon, scratch.normal);
  multiply({rows, 4 * C, C}, {scratch.normal, C}, {p(kExpandWeight), 4 * C}, {s.expanded, 4 * C});
  kernel.bias_gelu(rows, 4 * C, p(kExpandBias), s.expanded, scratch.wide);
  multiply({rows, C, 4 * C}, {scratch.wide, 4 * C}, {p(kContractWeight), C}, {y, C});
  kernel.add_bias_and_residual(rows, C, p(kContractBias), s.middle, y);
}

void BlockLayer::backward(const BackwardArgs& args) {
  check(Kind::kBlock, args);
  const ComputeScope scope;
  const Backward scratch(dims_, workspace_.floats());
  feed_forward_backward(args, scratch);
  attention_part_backward(args, scratch);
}

void BlockLayer::feed_forward_backward(const BackwardArgs& args, const Backward& b) {
  const auto& kernel = kernels::best();
  const auto p = [&](BlockTensor t) { return tensor(args.parameters, specs_, t); };
  const auto g = [&](BlockTensor t) { return tensor(args.gradients, specs_, t); };
  const Stash<const float> s = stash_of(dims_, args);
  const std::size_t rows = dims_.rows();
  const std::size_t C = dims_.C;
  const float* dy = args.output_gradient.data();

  kernel.add_column_sums(rows, C, dy, g(kContractBias));
  multiply({rows, 4 * C, C}, {dy, C}, {p(kContractWeight), C, true}, {b.dwide, 4 * C});
  kernel.gelu_backward(rows, 4 * C, s.expanded, b.dwide, b.wide, g(kExpandBias));
  multiply_add({4 * C, C, rows}, {b.wide, 4 * C, true}, {dy, C}, {g(kContractWeight), C});

  const kernels::ConstRowStatistics statistics{s.mean2, s.inverse_deviation2};
  kernel.layer_norm_again(rows, C, s.middle, p(kNorm2Weight), p(kNorm2Bias), statistics, b.normal);
  linear_backward(rows, C, 4 * C, b.normal, p(kExpandWeight), b.dwide, g(kExpandWeight), b.dnormal);
  kernel.layer_norm_backward({.rows = rows,
                              .columns = C,
                              .x = s.middle,
                              .weight = p(kNorm2Weight),
                              .statistics = statistics,
                              .dy = b.dnormal,
                              .residual = dy,
                              .dx = b.dmiddle,
                              .dweight = g(kNorm2Weight),
                              .dbias = g(kNorm2Bias)});
}

void BlockLayer::attention_part_backward(const BackwardArgs& args, const Backward& b) {
  const auto& kernel = kernels::best();
  const auto p = [&](BlockTensor t) { return tensor(args.parameters, specs_, t); };
  const auto g = [&](BlockTensor t) { return tensor(args.gradients, specs_, t); };
  const Stash<const float> s = stash_of(dims_, args);
  const std::size_t rows = dims_.rows();
  const std::size_t C = dims_.C;
  const float* x = args.input.data();
  float* dqkv = b.wide;

  kernel.add_column_sums(rows, C, b.dmiddle, g(kProjectionBias));
  linear_backward(rows, C, C, s.attended, p(kProjectionWeight), b.dmiddle, g(kProjectionWeight),
                  b.dattended);
  attention_backward(dims_, s.qkv, {s.largest, s.inverse_sum}, s.attended, b.dattended, b.attention,
                     dqkv);
  kernel.add_column_sums(rows, 3 * C, dqkv, g(kQkvBias));

  const kernels::ConstRowStatistics statistics{s.mean1, s.inverse_deviation1};
  kernel.layer_norm_again(rows, C, x, p(kNorm1Weight), p(kNorm1Bias), statistics, b.normal);
  linear_backward(rows, C, 3 * C, b.normal, p(kQkvWeight), dqkv, g(kQkvWeight), b.dnormal);
  kernel.layer_norm_backward({.rows = rows,
                              .columns = C,
                              .x = x,
                              .weight = p(kNorm1Weight),
                              .statistics = statistics,
                              .dy = b.dnormal,
                              .residual = b.dmiddle,
                              .dx = args.input_gradient.data(),
                              .dweight = g(kNorm1Weight),
                              .dbias = g(kNorm1Bias)});
}

}  // namespace holmes::model::cpu
