#include <array>

#include "cpu/attention.hpp"
#include "cpu/compute_scope.hpp"
#include "cpu/gemm.hpp"
#include "cpu/layers.hpp"
#include "kernels/kernels.hpp"

namespace holmes::model::cpu {
namespace {

/// What backward needs besides the block's input: C + 2F + 2HD + 2GD + 2H + 2 floats a token.
/// Outputs of norms and of SwiGLU are computed again instead.
template <class T>
struct Stash {
  T* inverse_deviation1;
  T* inverse_deviation2;
  T* largest;
  T* inverse_sum;
  T* qkv;  ///< Queries and keys as they are after the rotation.
  T* attended;
  T* middle;  ///< The residual stream between attention and the feed-forward part.
  T* gated;   ///< What goes into SwiGLU: gate, then what goes through it.

  Stash(const Dims& d, T* memory) {
    Carver<T> carve(memory);
    const auto sizes = counts(d);
    std::size_t i = 0;
    for (T** each : {&inverse_deviation1, &inverse_deviation2, &largest, &inverse_sum, &qkv,
                     &attended, &middle, &gated})
      *each = carve.take(sizes[i++]);
  }
  static std::size_t count(const Dims& d) {
    std::size_t total = 0;
    for (const std::size_t each : counts(d)) total += Carver<T>::rounded(each);
    return total;
  }

 private:
  static std::array<std::size_t, 8> counts(const Dims& d) {
    const std::size_t n = d.rows();
    return {n,       n,          n * d.H, n * d.H, n * d.qkv_width(), n * d.attended_width(),
            n * d.C, n * 2 * d.F};
  }
};

Stash<float> stash_of(const Dims& d, const ForwardArgs& args) {
  return {d, reinterpret_cast<float*>(args.stash.data())};
}
Stash<const float> stash_of(const Dims& d, const BackwardArgs& args) {
  return {d, reinterpret_cast<const float*>(args.stash.data())};
}

/// y = x weight^T; the weight is out x in.
void linear(std::size_t rows, std::size_t in, std::size_t out, const float* x, const float* weight,
            float* y) {
  multiply({rows, out, in}, {x, in}, {weight, in, true}, {y, out});
}

/// dweight += dy^T x; dx = dy weight.
void linear_backward(std::size_t rows, std::size_t in, std::size_t out, const float* x,
                     const float* weight, const float* dy, float* dweight, float* dx) {
  multiply_add({out, in, rows}, {dy, out, true}, {x, in}, {dweight, in});
  multiply({rows, in, out}, {dy, out}, {weight, in}, {dx, in});
}

}  // namespace

/// Of a backward pass; a forward pass uses the first two and that of attention.
struct LlamaBlockLayer::Scratch {
  float* normal;     ///< rows x C: output of a norm.
  float* activated;  ///< rows x F: output of SwiGLU.
  float* dactivated;
  float* dgated;     ///< rows x 2F
  float* dnormal;    ///< rows x C
  float* dmiddle;    ///< rows x C
  float* dattended;  ///< rows x HD
  float* dqkv;
  float* attention;

  Scratch(const Dims& d, std::span<float> memory) {
    Carver<float> carve(memory.data());
    const auto sizes = counts(d);
    std::size_t i = 0;
    for (float** each : {&normal, &activated, &dactivated, &dgated, &dnormal, &dmiddle, &dattended,
                         &dqkv, &attention})
      *each = carve.take(sizes[i++]);
  }
  static std::size_t count(const Dims& d) {
    std::size_t total = 0;
    for (const std::size_t each : counts(d)) total += Carver<float>::rounded(each);
    return total;
  }

 private:
  static std::array<std::size_t, 9> counts(const Dims& d) {
    const std::size_t n = d.rows();
    return {n * d.C,
            n * d.F,
            n * d.F,
            n * 2 * d.F,
            n * d.C,
            n * d.C,
            n * d.attended_width(),
            n * d.qkv_width(),
            attention_scratch(d)};
  }
};

LlamaBlockLayer::LlamaBlockLayer(const GptConfig& config, const MicroBatchShape& shape,
                                 std::uint32_t index, std::shared_ptr<const RotaryTable> rotary,
                                 Workspace& workspace)
    : LayerBase({config, shape}, block_parameters(config, index)),
      rotary_(std::move(rotary)),
      epsilon_(static_cast<float>(config.norm_epsilon)),
      workspace_(workspace) {
  workspace_.reserve(Scratch::count(dims_));
}

std::size_t LlamaBlockLayer::stash_bytes() const {
  return sizeof(float) * Stash<float>::count(dims_);
}

/// Queries and keys, which lie side by side.
void LlamaBlockLayer::rotate(bool back, float* qkv) const {
  kernels::best().rotate({.rows = dims_.rows(),
                          .heads = dims_.H + dims_.G,
                          .half = rotary_->pairs,
                          .stride = dims_.qkv_width(),
                          .positions = dims_.T,
                          .cosines = rotary_->cosines.data(),
                          .sines = rotary_->sines.data(),
                          .back = back},
                         qkv);
}

void LlamaBlockLayer::forward(const ForwardArgs& args) {
  check(Kind::kBlock, args);
  const ComputeScope scope;
  const Scratch scratch(dims_, workspace_.floats());
  attention_forward(args, scratch);
  feed_forward(args, scratch);
}

void LlamaBlockLayer::attention_forward(const ForwardArgs& args, const Scratch& b) {
  const auto& kernel = kernels::best();
  const auto p = [&](LlamaBlockTensor t) { return tensor(args.parameters, specs_, t); };
  const Stash<float> s = stash_of(dims_, args);
  const std::size_t rows = dims_.rows();
  const std::size_t C = dims_.C;
  kernel.rms_norm(rows, C, args.input.data(), p(kInputNorm), s.inverse_deviation1, epsilon_,
                  b.normal);
  linear(rows, C, dims_.qkv_width(), b.normal, p(kQueryWeight), s.qkv);
  rotate(false, s.qkv);
  attention(dims_, s.qkv, {s.largest, s.inverse_sum}, b.attention, s.attended);
  linear(rows, dims_.attended_width(), C, s.attended, p(kOutputWeight), s.middle);
  kernel.add(rows * C, s.middle, args.input.data());
}

void LlamaBlockLayer::feed_forward(const ForwardArgs& args, const Scratch& b) {
  const auto& kernel = kernels::best();
  const auto p = [&](LlamaBlockTensor t) { return tensor(args.parameters, specs_, t); };
  const Stash<float> s = stash_of(dims_, args);
  const std::size_t rows = dims_.rows();
  const std::size_t C = dims_.C;
  float* y = args.output.data();
  kernel.rms_norm(rows, C, s.middle, p(kPostNorm), s.inverse_deviation2, epsilon_, b.normal);
  linear(rows, C, 2 * dims_.F, b.normal, p(kGateWeight), s.gated);
  kernel.swiglu(rows, dims_.F, s.gated, b.activated);
  linear(rows, dims_.F, C, b.activated, p(kDownWeight), y);
  kernel.add(rows * C, y, s.middle);
}

void LlamaBlockLayer::backward(const BackwardArgs& args) {
  check(Kind::kBlock, args);
  const ComputeScope scope;
  const Scratch scratch(dims_, workspace_.floats());
  feed_forward_backward(args, scratch);
  attention_part_backward(args, scratch);
}

void LlamaBlockLayer::feed_forward_backward(const BackwardArgs& args, const Scratch& b) {
  const auto& kernel = kernels::best();
  const auto p = [&](LlamaBlockTensor t) { return tensor(args.parameters, specs_, t); };
  const auto g = [&](LlamaBlockTensor t) { return tensor(args.gradients, specs_, t); };
  const Stash<const float> s = stash_of(dims_, args);
  const std::size_t rows = dims_.rows();
  const std::size_t C = dims_.C;
  const std::size_t F = dims_.F;
  const float* dy = args.output_gradient.data();

  multiply({rows, F, C}, {dy, C}, {p(kDownWeight), F}, {b.dactivated, F});
  kernel.swiglu_backward(rows, F, s.gated, b.dactivated, b.activated, b.dgated);
  multiply_add({C, F, rows}, {dy, C, true}, {b.activated, F}, {g(kDownWeight), F});

  kernel.rms_norm_again(rows, C, s.middle, p(kPostNorm), s.inverse_deviation2, b.normal);
  linear_backward(rows, C, 2 * F, b.normal, p(kGateWeight), b.dgated, g(kGateWeight), b.dnormal);
  kernel.rms_norm_backward({.rows = rows,
                            .columns = C,
                            .x = s.middle,
                            .weight = p(kPostNorm),
                            .statistics = {nullptr, s.inverse_deviation2},
                            .dy = b.dnormal,
                            .residual = dy,
                            .dx = b.dmiddle,
                            .dweight = g(kPostNorm),
                            .dbias = nullptr});
}

void LlamaBlockLayer::attention_part_backward(const BackwardArgs& args, const Scratch& b) {
  const auto& kernel = kernels::best();
  const auto p = [&](LlamaBlockTensor t) { return tensor(args.parameters, specs_, t); };
  const auto g = [&](LlamaBlockTensor t) { return tensor(args.gradients, specs_, t); };
  const Stash<const float> s = stash_of(dims_, args);
  const std::size_t rows = dims_.rows();
  const std::size_t C = dims_.C;
  const float* x = args.input.data();

  linear_backward(rows, dims_.attended_width(), C, s.attended, p(kOutputWeight), b.dmiddle,
                  g(kOutputWeight), b.dattended);
  attention_backward(dims_, s.qkv, {s.largest, s.inverse_sum}, s.attended, b.dattended, b.attention,
                     b.dqkv);
  rotate(true, b.dqkv);

  kernel.rms_norm_again(rows, C, x, p(kInputNorm), s.inverse_deviation1, b.normal);
  linear_backward(rows, C, dims_.qkv_width(), b.normal, p(kQueryWeight), b.dqkv, g(kQueryWeight),
                  b.dnormal);
  kernel.rms_norm_backward({.rows = rows,
                            .columns = C,
                            .x = x,
                            .weight = p(kInputNorm),
                            .statistics = {nullptr, s.inverse_deviation1},
                            .dy = b.dnormal,
                            .residual = b.dmiddle,
                            .dx = args.input_gradient.data(),
                            .dweight = g(kInputNorm),
                            .dbias = nullptr});
}

}  // namespace holmes::model::cpu
