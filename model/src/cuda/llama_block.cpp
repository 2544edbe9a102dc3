#include "cuda/layers.hpp"

namespace holmes::model::cuda {
namespace {

/// What backward needs besides the block's input; norms and SwiGLU are computed again.
template <class T>
struct Stash {
  NormRows<T> norm1;
  NormRows<T> norm2;
  AttentionKept<T> attention;
  T* qkv;  ///< After the rotation.
  T* attended;
  T* middle;  ///< The residual stream between attention and the feed-forward part.
  T* gated;

  Stash(const Dims& d, T* memory) {
    Parts<T> parts(memory);
    const std::size_t n = d.rows();
    norm1 = {nullptr, parts.take(n)};
    norm2 = {nullptr, parts.take(n)};
    attention.largest = parts.take(n * d.H);
    attention.inverse_sum = parts.take(n * d.H);
    qkv = parts.take(n * d.qkv_width());
    attended = parts.take(n * d.attended_width());
    middle = parts.take(n * d.C);
    gated = parts.take(n * 2 * d.F);
  }
  static std::size_t count(const Dims& d) {
    const auto rounded = Parts<T>::rounded;
    const std::size_t n = d.rows();
    return 2 * rounded(n) + 2 * rounded(n * d.H) + rounded(n * d.qkv_width()) +
           rounded(n * d.attended_width()) + rounded(n * d.C) + rounded(n * 2 * d.F);
  }
};

}  // namespace

LlamaBlockLayer::LlamaBlockLayer(Session& session, const GptConfig& config,
                                 const MicroBatchShape& shape, std::uint32_t index,
                                 std::shared_ptr<const DeviceRotary> rotary)
    : DeviceLayer(session, "block " + std::to_string(index), {config, shape},
                  block_parameters(config, index)),
      epsilon_(static_cast<float>(config.norm_epsilon)),
      rotary_(std::move(rotary)) {}

std::size_t LlamaBlockLayer::stash_bytes() const {
  return sizeof(float) * Stash<float>::count(dims_);
}

Norm LlamaBlockLayer::norm_of(const float* parameters, LlamaBlockTensor weight) const {
  return {.columns = dims_.C,
          .weight = parameters + specs_[weight].offset,
          .bias = nullptr,
          .epsilon = epsilon_};
}

Weight LlamaBlockLayer::weight_of(const float* parameters, LlamaBlockTensor weight, std::size_t in,
                                  std::size_t out) const {
  return {.in = in, .out = out, .data = parameters + specs_[weight].offset, .is_out_by_in = true};
}

/// Queries and keys lie side by side at the beginning of each row.
void LlamaBlockLayer::rotate(bool back, float* qkv) const {
  session_.launch(RotateKernel{.rows = dims_.rows(),
                               .heads = dims_.H + dims_.G,
                               .half = dims_.D / 2,
                               .stride = dims_.qkv_width(),
                               .positions = dims_.T,
                               .cosines = rotary_->cosines.as(),
                               .sines = rotary_->sines.as(),
                               .back = back,
                               .x = qkv});
}

void LlamaBlockLayer::forward(const ForwardArgs& args) {
  check(Kind::kBlock, args);
  const ForwardScope scope(session_, name_, args);
  if (!session_.status()) return;
  attention_part(scope);
  feed_forward(scope);
}

void LlamaBlockLayer::attention_part(const ForwardScope& scope) {
  const float* p = scope.parameters.data();
  const Stash<float> s(dims_, scope.stash.data());
  const std::size_t rows = dims_.rows();
  const std::size_t C = dims_.C;
  const auto normal = session_.floats(rows * C);
  norm(session_, norm_of(p, kInputNorm), rows, scope.input.data(), s.norm1, normal.as());
  linear(session_, weight_of(p, kQueryWeight, C, dims_.qkv_width()), rows, normal.as(), nullptr,
         nullptr, s.qkv);
  rotate(false, s.qkv);
  attention(session_, dims_, s.qkv, s.attention, s.attended);
  linear(session_, weight_of(p, kOutputWeight, dims_.attended_width(), C), rows, s.attended,
         nullptr, scope.input.data(), s.middle);
}

void LlamaBlockLayer::feed_forward(const ForwardScope& scope) {
  const float* p = scope.parameters.data();
  const Stash<float> s(dims_, scope.stash.data());
  const std::size_t rows = dims_.rows();
  const std::size_t C = dims_.C;
  const std::size_t F = dims_.F;
  const auto normal = session_.floats(rows * C);
  const auto activated = session_.floats(rows * F);
  norm(session_, norm_of(p, kPostNorm), rows, s.middle, s.norm2, normal.as());
  linear(session_, weight_of(p, kGateWeight, C, 2 * F), rows, normal.as(), nullptr, nullptr,
         s.gated);
  session_.launch(SwigluKernel{rows, F, s.gated, activated.as()});
  linear(session_, weight_of(p, kDownWeight, F, C), rows, activated.as(), nullptr, s.middle,
         scope.output.data());
}

void LlamaBlockLayer::backward(const BackwardArgs& args) {
  check(Kind::kBlock, args);
  const BackwardScope scope(session_, name_, args);
  const auto dmiddle = session_.floats(dims_.rows() * dims_.C);
  if (!session_.status()) return;
  feed_forward_backward(scope, dmiddle.as());
  attention_part_backward(scope, dmiddle.as());
}

void LlamaBlockLayer::feed_forward_backward(const BackwardScope& scope, float* dmiddle) {
  const float* p = scope.parameters.data();
  float* g = scope.gradients.data();
  const Stash<const float> s(dims_, scope.stash.data());
  const std::size_t rows = dims_.rows();
  const std::size_t C = dims_.C;
  const std::size_t F = dims_.F;
  const float* dy = scope.output_gradient.data();
  const Weight down = weight_of(p, kDownWeight, F, C);
  const Weight gate = weight_of(p, kGateWeight, C, 2 * F);
  const auto activated = session_.floats(rows * F);
  const auto dactivated = session_.floats(rows * F);
  const auto dgated = session_.floats(rows * 2 * F);
  const auto normal = session_.floats(rows * C);
  const auto dnormal = session_.floats(rows * C);

  linear_input_gradient(session_, down, rows, dy, dactivated.as());
  session_.launch(
      SwigluBackwardKernel{rows, F, s.gated, dactivated.as(), activated.as(), dgated.as()});
  linear_weight_gradient(session_, down, rows, activated.as(), dy, g + specs_[kDownWeight].offset);

  norm_again(session_, norm_of(p, kPostNorm), rows, s.middle, s.norm2, normal.as());
  linear_weight_gradient(session_, gate, rows, normal.as(), dgated.as(),
                         g + specs_[kGateWeight].offset);
  linear_input_gradient(session_, gate, rows, dgated.as(), dnormal.as());
  norm_backward(session_, norm_of(p, kPostNorm),
                {.rows = rows,
                 .x = s.middle,
                 .kept = s.norm2,
                 .dy = dnormal.as(),
                 .residual = dy,
                 .dx = dmiddle},
                {g + specs_[kPostNorm].offset, nullptr});
}

void LlamaBlockLayer::attention_part_backward(const BackwardScope& scope, const float* dmiddle) {
  const float* p = scope.parameters.data();
  float* g = scope.gradients.data();
  const Stash<const float> s(dims_, scope.stash.data());
  const std::size_t rows = dims_.rows();
  const std::size_t C = dims_.C;
  const float* x = scope.input.data();
  const Weight output = weight_of(p, kOutputWeight, dims_.attended_width(), C);
  const Weight qkv = weight_of(p, kQueryWeight, C, dims_.qkv_width());
  const auto dattended = session_.floats(rows * dims_.attended_width());
  const auto dqkv = session_.floats(rows * dims_.qkv_width());
  const auto normal = session_.floats(rows * C);
  const auto dnormal = session_.floats(rows * C);

  linear_weight_gradient(session_, output, rows, s.attended, dmiddle,
                         g + specs_[kOutputWeight].offset);
  linear_input_gradient(session_, output, rows, dmiddle, dattended.as());
  attention_backward(session_, dims_, s.qkv, {s.attention.largest, s.attention.inverse_sum},
                     s.attended, dattended.as(), dqkv.as());
  rotate(true, dqkv.as());

  norm_again(session_, norm_of(p, kInputNorm), rows, x, s.norm1, normal.as());
  linear_weight_gradient(session_, qkv, rows, normal.as(), dqkv.as(),
                         g + specs_[kQueryWeight].offset);
  linear_input_gradient(session_, qkv, rows, dqkv.as(), dnormal.as());
  norm_backward(session_, norm_of(p, kInputNorm),
                {.rows = rows,
                 .x = x,
                 .kept = s.norm1,
                 .dy = dnormal.as(),
                 .residual = dmiddle,
                 .dx = scope.input_gradient.data()},
                {g + specs_[kInputNorm].offset, nullptr});
}

}  // namespace holmes::model::cuda
