#include <algorithm>

#include "cuda/layers.hpp"

namespace holmes::model::cuda {
namespace {

/// Rows whose logits exist at once.
constexpr std::size_t kRowsAtOnce = 1024;

template <class T>
struct Stash {
  NormRows<T> norm;

  Stash(const Dims& d, T* memory) {
    Parts<T> parts(memory);
    norm.mean = parts.take(d.rows());
    norm.inverse = parts.take(d.rows());
  }
  static std::size_t count(const Dims& d) { return 2 * Parts<T>::rounded(d.rows()); }
};

template <class Body>
void each_run(std::size_t rows, const Body& body) {
  for (std::size_t row = 0; row < rows; row += kRowsAtOnce)
    body(row, std::min(kRowsAtOnce, rows - row));
}

}  // namespace

HeadLayer::HeadLayer(Session& session, const GptConfig& config, const MicroBatchShape& shape)
    : DeviceLayer(session, "head", {config, shape}, head_parameters(config)),
      is_rms_(config.family == Family::kLlama),
      epsilon_(is_rms_ ? static_cast<float>(config.norm_epsilon) : kNormEpsilon) {}

std::size_t HeadLayer::stash_bytes() const {
  return sizeof(float) * Stash<float>::count(dims_);
}

Norm HeadLayer::norm_of(const float* parameters) const {
  return {.columns = dims_.C,
          .weight = parameters + specs_[kFinalNormWeight].offset,
          .bias = is_rms_ ? nullptr : parameters + specs_[kFinalNormBias].offset,
          .epsilon = epsilon_};
}

/// Only its first V rows: padding has no logits and gets no gradient.
Weight HeadLayer::table_of(const float* parameters) const {
  return {.in = dims_.C,
          .out = dims_.V,
          .data = parameters + specs_.back().offset,
          .is_out_by_in = true};
}

void HeadLayer::forward(const ForwardArgs& args) {
  check(Kind::kHead, args);
  const ForwardScope scope(session_, name_, args);
  const Reads<std::int32_t> targets(session_, args.targets);
  const std::size_t rows = dims_.rows();
  const auto normal = session_.floats(rows * dims_.C);
  const auto scores = session_.floats(std::min(rows, kRowsAtOnce) * dims_.V);
  const auto losses = session_.floats(rows);
  if (!session_.status()) return;
  const Stash<float> s(dims_, scope.stash.data());
  const float* p = scope.parameters.data();
  norm(session_, norm_of(p), rows, scope.input.data(), s.norm, normal.as());
  each_run(rows, [&](std::size_t row, std::size_t count) {
    linear(session_, table_of(p), count, normal.as() + row * dims_.C, nullptr, nullptr,
           scores.as());
    session_.launch(CrossEntropyKernel{.rows = count,
                                       .columns = dims_.V,
                                       .stride = dims_.V,
                                       .targets = targets.data() + row,
                                       .logits = scores.as(),
                                       .losses = losses.as() + row,
                                       .gradient_scale = 0});
  });
  const ChunkSumsKernel::Range all{0, rows};
  double total = 0;
  chunk_sums(session_, {&all, 1}, losses.as(), false, {&total, 1});
  *args.loss = static_cast<float>(total / static_cast<double>(rows));
}

void HeadLayer::backward(const BackwardArgs& args) {
  check(Kind::kHead, args);
  const BackwardScope scope(session_, name_, args);
  const Reads<std::int32_t> targets(session_, args.targets);
  const std::size_t rows = dims_.rows();
  const std::size_t C = dims_.C;
  const auto normal = session_.floats(rows * C);
  const auto dnormal = session_.floats(rows * C);
  const auto scores = session_.floats(std::min(rows, kRowsAtOnce) * dims_.V);
  if (!session_.status()) return;
  const Stash<const float> s(dims_, scope.stash.data());
  const float* p = scope.parameters.data();
  float* g = scope.gradients.data();
  norm_again(session_, norm_of(p), rows, scope.input.data(), s.norm, normal.as());
  each_run(rows, [&](std::size_t row, std::size_t count) {
    linear(session_, table_of(p), count, normal.as() + row * C, nullptr, nullptr, scores.as());
    session_.launch(
        CrossEntropyKernel{.rows = count,
                           .columns = dims_.V,
                           .stride = dims_.V,
                           .targets = targets.data() + row,
                           .logits = scores.as(),
                           .losses = nullptr,
                           .gradient_scale = args.loss_scale / static_cast<float>(rows)});
    linear_weight_gradient(session_, table_of(p), count, normal.as() + row * C, scores.as(),
                           g + specs_.back().offset);
    linear_input_gradient(session_, table_of(p), count, scores.as(), dnormal.as() + row * C);
  });
  norm_backward(
      session_, norm_of(p),
      {.rows = rows,
       .x = scope.input.data(),
       .kept = s.norm,
       .dy = dnormal.as(),
       .residual = nullptr,
       .dx = scope.input_gradient.data()},
      {g + specs_[kFinalNormWeight].offset, is_rms_ ? nullptr : g + specs_[kFinalNormBias].offset});
}

void HeadLayer::logits(std::size_t rows, const float* parameters, const float* input, float* out) {
  const auto normal = session_.floats(rows * dims_.C);
  const auto kept = session_.floats(2 * rows);
  if (!session_.status()) return;
  norm(session_, norm_of(parameters), rows, input, {kept.as(), kept.as() + rows}, normal.as());
  linear(session_, table_of(parameters), rows, normal.as(), nullptr, nullptr, out);
}

}  // namespace holmes::model::cuda
