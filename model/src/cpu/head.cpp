#include "cpu/compute_scope.hpp"
#include "cpu/gemm.hpp"
#include "cpu/layers.hpp"
#include "kernels/kernels.hpp"

namespace holmes::model::cpu {
namespace {

/// The gradient of the logits, for a loss scale of 1, is made in forward while a row's logits are
/// in cache. Keeping it costs rows x V floats; computing the logits again in backward would make
/// the head a third slower. Rows begin at cache lines.
template <class T>
struct Stash {
  T* mean;
  T* inverse_deviation;
  T* dlogits;

  Stash(const Dims& d, T* memory) {
    Carver<T> carve(memory);
    mean = carve.take(d.rows());
    inverse_deviation = carve.take(d.rows());
    dlogits = carve.take(d.rows() * stride(d));
  }
  static std::size_t stride(const Dims& d) { return Carver<T>::rounded(d.V); }
  static std::size_t count(const Dims& d) {
    return 2 * Carver<T>::rounded(d.rows()) + d.rows() * stride(d);
  }
};

}  // namespace

HeadLayer::HeadLayer(const GptConfig& config, const MicroBatchShape& shape, Workspace& workspace)
    : LayerBase({config, shape}, head_parameters(config)), norm_(config), workspace_(workspace) {
  workspace_.reserve(2 * Carver<float>::rounded(dims_.rows() * dims_.C));
}

std::size_t HeadLayer::stash_bytes() const {
  return sizeof(float) * Stash<float>::count(dims_);
}

// Only the first V rows of the table take part in any product: padding rows have no logits and get
// no gradient.
void HeadLayer::forward(const ForwardArgs& args) {
  check(Kind::kHead, args);
  const ComputeScope scope;
  const Stash<float> s(dims_, reinterpret_cast<float*>(args.stash.data()));
  const std::size_t rows = dims_.rows();
  const std::size_t C = dims_.C;
  const std::size_t stride = Stash<float>::stride(dims_);
  float* normal = workspace_.floats().data();
  norm_.forward(rows, args.parameters, args.input.data(), {s.mean, s.inverse_deviation}, normal);
  multiply({rows, dims_.V, C}, {normal, C}, {output_table(args.parameters, specs_), C, true},
           {s.dlogits, stride});
  const double total =
      kernels::best().cross_entropy({.rows = rows,
                                     .columns = dims_.V,
                                     .stride = stride,
                                     .targets = args.targets.data(),
                                     .gradient_scale = 1.0F / static_cast<float>(rows),
                                     .logits = s.dlogits});
  *args.loss = static_cast<float>(total / static_cast<double>(rows));
}

void HeadLayer::backward(const BackwardArgs& args) {
  check(Kind::kHead, args);
  const ComputeScope scope;
  const Stash<const float> s(dims_, reinterpret_cast<const float*>(args.stash.data()));
  const std::size_t rows = dims_.rows();
  const std::size_t C = dims_.C;
  const std::size_t stride = Stash<float>::stride(dims_);
  Carver<float> carve(workspace_.floats().data());
  float* normal = carve.take(rows * C);
  float* dnormal = carve.take(rows * C);
  const kernels::ConstRowStatistics statistics{s.mean, s.inverse_deviation};

  norm_.again(rows, args.parameters, args.input.data(), statistics, normal);
  multiply_add({dims_.V, C, rows}, {s.dlogits, stride, true}, {normal, C},
               {output_table(args.gradients, specs_), C}, args.loss_scale);
  multiply({rows, C, dims_.V}, {s.dlogits, stride}, {output_table(args.parameters, specs_), C},
           {dnormal, C}, args.loss_scale);
  norm_.backward(rows, args, statistics, dnormal);
}

}  // namespace holmes::model::cpu
