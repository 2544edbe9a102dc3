#include "cuda/operators.hpp"

#include <cmath>

namespace holmes::model::cuda {
namespace {

AttentionShape attention_shape(const Dims& d) {
  return {.samples = d.B,
          .tokens = d.T,
          .heads = d.H,
          .kv_heads = d.G,
          .width = d.D,
          .scale = 1.0F / std::sqrt(static_cast<float>(d.D))};
}

template <template <int> class Kernel, class... Arguments>
void launch_for_width(Session& session, const AttentionShape& shape, Arguments... arguments) {
  if (shape.width <= 64) return session.launch(Kernel<4>{shape, arguments...});
  if (shape.width <= 128) return session.launch(Kernel<8>{shape, arguments...});
  session.launch(Kernel<16>{shape, arguments...});
}

}  // namespace

void norm(Session& session, const Norm& norm, std::size_t rows, const float* x,
          NormRows<float> kept, float* y) {
  session.launch(NormKernel{.rows = rows,
                            .columns = norm.columns,
                            .x = x,
                            .weight = norm.weight,
                            .bias = norm.bias,
                            .mean = norm.bias == nullptr ? nullptr : kept.mean,
                            .inverse = kept.inverse,
                            .epsilon = norm.epsilon,
                            .y = y});
}

void norm_again(Session& session, const Norm& norm, std::size_t rows, const float* x,
                NormRows<const float> kept, float* y) {
  session.launch(NormAgainKernel{.rows = rows,
                                 .columns = norm.columns,
                                 .x = x,
                                 .weight = norm.weight,
                                 .bias = norm.bias,
                                 .mean = norm.bias == nullptr ? nullptr : kept.mean,
                                 .inverse = kept.inverse,
                                 .y = y});
}

void norm_backward(Session& session, const Norm& norm, const NormPass& pass,
                   const NormGradients& gradients) {
  const bool is_rms = norm.bias == nullptr;
  const float* mean = is_rms ? nullptr : pass.kept.mean;
  const std::size_t run_count = groups_of(pass.rows, kRunRows);
  const auto runs = session.floats(2 * run_count * norm.columns);
  float* normal_runs = runs.as() == nullptr ? nullptr : runs.as() + run_count * norm.columns;
  session.launch(ColumnRunsKernel{.rows = pass.rows,
                                  .columns = norm.columns,
                                  .dy = pass.dy,
                                  .x = pass.x,
                                  .mean = mean,
                                  .inverse = pass.kept.inverse,
                                  .runs = is_rms ? nullptr : runs.as(),
                                  .normal_runs = normal_runs});
  session.launch(AddRunsKernel{run_count, norm.columns, normal_runs, gradients.weight});
  if (!is_rms) session.launch(AddRunsKernel{run_count, norm.columns, runs.as(), gradients.bias});
  session.launch(NormBackwardKernel{.rows = pass.rows,
                                    .columns = norm.columns,
                                    .x = pass.x,
                                    .weight = norm.weight,
                                    .mean = mean,
                                    .inverse = pass.kept.inverse,
                                    .dy = pass.dy,
                                    .residual = pass.residual,
                                    .dx = pass.dx});
}

void add_column_sums(Session& session, std::size_t rows, std::size_t columns, const float* y,
                     float* sums) {
  const std::size_t run_count = groups_of(rows, kRunRows);
  const auto runs = session.floats(run_count * columns);
  session.launch(ColumnRunsKernel{.rows = rows,
                                  .columns = columns,
                                  .dy = y,
                                  .x = nullptr,
                                  .mean = nullptr,
                                  .inverse = nullptr,
                                  .runs = runs.as(),
                                  .normal_runs = nullptr});
  session.launch(AddRunsKernel{run_count, columns, runs.as(), sums});
}

void linear(Session& session, const Weight& weight, std::size_t rows, const float* x,
            const float* bias, const float* added, float* y) {
  session.multiply(
      {.rows = rows,
       .columns = weight.out,
       .inner = weight.in,
       .left = {x, weight.in},
       .right = {weight.data, weight.is_out_by_in ? weight.in : weight.out, weight.is_out_by_in},
       .out = y,
       .out_stride = weight.out,
       .added = added,
       .bias = bias});
}

void linear_weight_gradient(Session& session, const Weight& weight, std::size_t rows,
                            const float* x, const float* dy, float* dweight) {
  const Matrix inputs = {x, weight.in, false};
  const Matrix outputs = {dy, weight.out, false};
  Product product{.rows = weight.in,
                  .columns = weight.out,
                  .inner = rows,
                  .left = inputs,
                  .right = outputs,
                  .out = dweight,
                  .out_stride = weight.out,
                  .added = dweight};
  if (weight.is_out_by_in) {
    product.rows = weight.out;
    product.columns = weight.in;
    product.left = outputs;
    product.right = inputs;
    product.out_stride = weight.in;
  }
  product.left.transposed = true;
  session.multiply(product);
}

void linear_input_gradient(Session& session, const Weight& weight, std::size_t rows,
                           const float* dy, float* dx) {
  session.multiply(
      {.rows = rows,
       .columns = weight.in,
       .inner = weight.out,
       .left = {dy, weight.out},
       .right = {weight.data, weight.is_out_by_in ? weight.in : weight.out, !weight.is_out_by_in},
       .out = dx,
       .out_stride = weight.in});
}

void attention(Session& session, const Dims& dims, const float* qkv, AttentionKept<float> kept,
               float* y) {
  launch_for_width<AttentionForwardKernel>(session, attention_shape(dims), qkv, kept.largest,
                                           kept.inverse_sum, y);
}

void attention_backward(Session& session, const Dims& dims, const float* qkv,
                        AttentionKept<const float> kept, const float* y, const float* dy,
                        float* dqkv) {
  const AttentionShape shape = attention_shape(dims);
  const auto delta = session.floats(dims.rows() * dims.H);
  session.launch(AttentionDeltaKernel{shape, y, dy, delta.as()});
  const AttentionRows rows{kept.largest, kept.inverse_sum, delta.as()};
  launch_for_width<AttentionQueriesKernel>(session, shape, qkv, dy, rows, dqkv);
  launch_for_width<AttentionKeysKernel>(session, shape, qkv, dy, rows, dqkv);
}

void chunk_sums(Session& session, std::span<const ChunkSumsKernel::Range> chunks,
                const float* values, bool squares, std::span<double> sums) {
  HOLMES_ASSERT(chunks.size() == sums.size(), "a sum for each chunk");
  if (chunks.empty()) return;
  const auto ranges = session.borrow(chunks.size_bytes());
  const auto results = session.borrow(sums.size_bytes());
  session.copy(ranges.as<ChunkSumsKernel::Range>(), chunks.data(), chunks.size_bytes());
  session.launch(ChunkSumsKernel{chunks.size(), ranges.as<ChunkSumsKernel::Range>(), values,
                                 squares, results.as<double>()});
  session.copy(sums.data(), results.as<double>(), sums.size_bytes());
}

}  // namespace holmes::model::cuda
