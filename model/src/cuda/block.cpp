// GPT-2's block.

#include "cuda/layers.hpp"

namespace holmes::model::cuda {
namespace {

/// What backward needs besides the block's input: as the cpu engine's. Outputs of norms and of GELU
/// are computed again instead.
template <class T>
struct Stash {
  NormRows<T> norm1;
  NormRows<T> norm2;
  AttentionKept<T> attention;
  T* qkv;
  T* attended;
  T* middle;  ///< The residual stream between attention and the feed-forward part.
  T* expanded;

  Stash(const Dims& d, T* memory) {
    Parts<T> parts(memory);
    const std::size_t n = d.rows();
    for (T** each : {&norm1.mean, &norm1.inverse, &norm2.mean, &norm2.inverse})
      *each = parts.take(n);
    for (T** each : {&attention.largest, &attention.inverse_sum}) *each = parts.take(n * d.H);
    qkv = parts.take(n * 3 * d.C);
    attended = parts.take(n * d.C);
    middle = parts.take(n * d.C);
    expanded = parts.take(n * d.F);
  }
  static std::size_t count(const Dims& d) {
    const auto rounded = Parts<T>::rounded;
    const std::size_t n = d.rows();
    return 4 * rounded(n) + 2 * rounded(n * d.H) + rounded(n * 3 * d.C) + 2 * rounded(n * d.C) +
           rounded(n * d.F);
  }
};

}  // namespace

BlockLayer::BlockLayer(Session& session, const GptConfig& config, const MicroBatchShape& shape,
                       std::uint32_t index)
    : DeviceLayer(session, "block " + std::to_string(index), {config, shape},
                  block_parameters(config, index)) {}

std::size_t BlockLayer::stash_bytes() const {
  return sizeof(float) * Stash<float>::count(dims_);
}

/// A norm's bias follows its weight.
Norm BlockLayer::norm_of(const float* parameters, BlockTensor weight) const {
  return {.columns = dims_.C,
          .weight = parameters + specs_[weight].offset,
          .bias = parameters + specs_[weight + 1].offset,
          .epsilon = kNormEpsilon};
}

Weight BlockLayer::weight_of(const float* parameters, BlockTensor weight, std::size_t in,
                             std::size_t out) const {
  return {.in = in, .out = out, .data = parameters + specs_[weight].offset, .is_out_by_in = false};
}

void BlockLayer::forward(const ForwardArgs& args) {
  check(Kind::kBlock, args);
  const ForwardScope scope(session_, name_, args);
  if (!session_.status()) return;
  attention_part(scope);
  feed_forward(scope);
}

void BlockLayer::attention_part(const ForwardScope& scope) {
  const float* p = scope.parameters.data();
  const Stash<float> s(dims_, scope.stash.data());
  const std::size_t rows = dims_.rows();
  const std::size_t C = dims_.C;
  const auto normal = session_.floats(rows * C);
  norm(session_, norm_of(p, kNorm1Weight), rows, scope.input.data(), s.norm1, normal.as());
  linear(session_, weight_of(p, kQkvWeight, C, 3 * C), rows, normal.as(),
         p + specs_[kQkvBias].offset, nullptr, s.qkv);
  attention(session_, dims_, s.qkv, s.attention, s.attended);
  linear(session_, weight_of(p, kProjectionWeight, C, C), rows, s.attended,
         p + specs_[kProjectionBias].offset, scope.input.data(), s.middle);
}

void BlockLayer::feed_forward(const ForwardScope& scope) {
  const float* p = scope.parameters.data();
  const Stash<float> s(dims_, scope.stash.data());
  const std::size_t rows = dims_.rows();
  const std::size_t C = dims_.C;
  const std::size_t F = dims_.F;
  const auto normal = session_.floats(rows * C);
  const auto activated = session_.floats(rows * F);
  norm(session_, norm_of(p, kNorm2Weight), rows, s.middle, s.norm2, normal.as());
  linear(session_, weight_of(p, kExpandWeight, C, F), rows, normal.as(),
         p + specs_[kExpandBias].offset, nullptr, s.expanded);
  session_.launch(GeluKernel{rows * F, s.expanded, activated.as()});
  linear(session_, weight_of(p, kContractWeight, F, C), rows, activated.as(),
         p + specs_[kContractBias].offset, s.middle, scope.output.data());
}

void BlockLayer::backward(const BackwardArgs& args) {
  check(Kind::kBlock, args);
  const BackwardScope scope(session_, name_, args);
  const auto dmiddle = session_.floats(dims_.rows() * dims_.C);
  if (!session_.status()) return;
  feed_forward_backward(scope, dmiddle.as());
  attention_part_backward(scope, dmiddle.as());
}

void BlockLayer::feed_forward_backward(const BackwardScope& scope, float* dmiddle) {
  const float* p = scope.parameters.data();
  float* g = scope.gradients.data();
  const Stash<const float> s(dims_, scope.stash.data());
  const std::size_t rows = dims_.rows();
  const std::size_t C = dims_.C;
  const std::size_t F = dims_.F;
  const float* dy = scope.output_gradient.data();
  const Weight contract = weight_of(p, kContractWeight, F, C);
  const Weight expand = weight_of(p, kExpandWeight, C, F);
  const auto activated = session_.floats(rows * F);
  const auto dexpanded = session_.floats(rows * F);
  const auto normal = session_.floats(rows * C);
  const auto dnormal = session_.floats(rows * C);

  add_column_sums(session_, rows, C, dy, g + specs_[kContractBias].offset);
  linear_input_gradient(session_, contract, rows, dy, dexpanded.as());
  session_.launch(GeluBackwardKernel{rows * F, s.expanded, dexpanded.as(), activated.as()});
  linear_weight_gradient(session_, contract, rows, activated.as(), dy,
                         g + specs_[kContractWeight].offset);
  add_column_sums(session_, rows, F, dexpanded.as(), g + specs_[kExpandBias].offset);

  norm_again(session_, norm_of(p, kNorm2Weight), rows, s.middle, s.norm2, normal.as());
  linear_weight_gradient(session_, expand, rows, normal.as(), dexpanded.as(),
                         g + specs_[kExpandWeight].offset);
  linear_input_gradient(session_, expand, rows, dexpanded.as(), dnormal.as());
  norm_backward(session_, norm_of(p, kNorm2Weight),
                {.rows = rows,
                 .x = s.middle,
                 .kept = s.norm2,
                 .dy = dnormal.as(),
                 .residual = dy,
                 .dx = dmiddle},
                {g + specs_[kNorm2Weight].offset, g + specs_[kNorm2Bias].offset});
}

void BlockLayer::attention_part_backward(const BackwardScope& scope, const float* dmiddle) {
  const float* p = scope.parameters.data();
  float* g = scope.gradients.data();
  const Stash<const float> s(dims_, scope.stash.data());
  const std::size_t rows = dims_.rows();
  const std::size_t C = dims_.C;
  const float* x = scope.input.data();
  const Weight projection = weight_of(p, kProjectionWeight, C, C);
  const Weight qkv = weight_of(p, kQkvWeight, C, 3 * C);
  const auto dattended = session_.floats(rows * C);
  const auto dqkv = session_.floats(rows * 3 * C);
  const auto normal = session_.floats(rows * C);
  const auto dnormal = session_.floats(rows * C);

  add_column_sums(session_, rows, C, dmiddle, g + specs_[kProjectionBias].offset);
  linear_weight_gradient(session_, projection, rows, s.attended, dmiddle,
                         g + specs_[kProjectionWeight].offset);
  linear_input_gradient(session_, projection, rows, dmiddle, dattended.as());
  attention_backward(session_, dims_, s.qkv, {s.attention.largest, s.attention.inverse_sum},
                     s.attended, dattended.as(), dqkv.as());
  add_column_sums(session_, rows, 3 * C, dqkv.as(), g + specs_[kQkvBias].offset);

  norm_again(session_, norm_of(p, kNorm1Weight), rows, x, s.norm1, normal.as());
  linear_weight_gradient(session_, qkv, rows, normal.as(), dqkv.as(),
                         g + specs_[kQkvWeight].offset);
  linear_input_gradient(session_, qkv, rows, dqkv.as(), dnormal.as());
  norm_backward(session_, norm_of(p, kNorm1Weight),
                {.rows = rows,
                 .x = x,
                 .kept = s.norm1,
                 .dy = dnormal.as(),
                 .residual = dmiddle,
                 .dx = scope.input_gradient.data()},
                {g + specs_[kNorm1Weight].offset, g + specs_[kNorm1Bias].offset});
}

}  // namespace holmes::model::cuda
