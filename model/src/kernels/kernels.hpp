#pragma once

// Vectorised inner loops, compiled once for each instruction set and chosen at run time through a
// table. Plain pointers only: an inline function of the standard library that was compiled for
// AVX-512 here could otherwise be the copy that the linker keeps for the whole program.
//
// Every kernel does the same operations in the same order on every instruction set (no contraction
// of multiply and add, sums over a fixed number of lanes), so all tables give the same bits.

#include <cstddef>
#include <cstdint>
#include <span>

namespace holmes::model::kernels {

/// What AdamW needs for each element, prepared once for each call.
struct AdamWFactors {
  float gradient_scale;
  float beta1;
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float decay;            ///< 1 - learning rate * weight decay.
  float step_size;        ///< learning rate / (1 - beta1^t).
  float inverse_sqrt_c2;  ///< 1 / sqrt(1 - beta2^t).
  float epsilon;
};

/// Mean and 1 / deviation of each row, as a norm computed them. RMS norms take the mean as zero,
/// and leave it out.
struct RowStatistics {
  float* mean;
  float* inverse_deviation;
};
struct ConstRowStatistics {
  const float* mean;
  const float* inverse_deviation;
};

struct NormBackward {
  std::size_t rows;
  std::size_t columns;
  const float* x;
  const float* weight;
  ConstRowStatistics statistics;
  const float* dy;
  const float* residual;  ///< Added to dx; null for none. May be dx.
  float* dx;              ///< Overwritten.
  float* dweight;         ///< Added to, as is dbias.
  float* dbias;           ///< Not used by RMS norms.
};

/// Heads at the beginning of each row, whose channels turn in pairs (i, i + half).
struct Rotation {
  std::size_t rows;
  std::size_t heads;
  std::size_t half;  ///< Pairs of a head.
  std::size_t stride;
  std::size_t positions;  ///< Row r is at position r % positions.
  const float* cosines;   ///< positions x half, as are the sines.
  const float* sines;
  bool back;  ///< The other way round: as gradients go.
};

/// A block of attention scores: row r may see its first first_length + r columns.
struct CausalScores {
  std::size_t rows;
  std::size_t columns;
  std::size_t stride;
  std::size_t first_length;
  float scale;
  float* scores;
};

struct LossRows {
  std::size_t rows;
  std::size_t columns;
  std::size_t stride;
  const std::int32_t* targets;
  float gradient_scale;
  float* logits;  ///< Become their gradient: gradient_scale * (softmax - one at the target).
};

struct Table {
  const char* name;
  /// destination += source.
  void (*add)(std::size_t count, float* destination, const float* source);
  double (*sum_of_squares)(std::size_t count, const float* values);
  void (*adamw)(const AdamWFactors& factors, std::size_t count, float* parameters,
                const float* gradients, float* exp_avg, float* exp_avg_sq);

  void (*layer_norm)(std::size_t rows, std::size_t columns, const float* x, const float* weight,
                     const float* bias, RowStatistics statistics, float epsilon, float* y);
  /// y once more, from kept statistics: the same bits as layer_norm gave.
  void (*layer_norm_again)(std::size_t rows, std::size_t columns, const float* x,
                           const float* weight, const float* bias, ConstRowStatistics statistics,
                           float* y);
  void (*layer_norm_backward)(const NormBackward& arguments);

  void (*rms_norm)(std::size_t rows, std::size_t columns, const float* x, const float* weight,
                   float* inverse_deviation, float epsilon, float* y);
  void (*rms_norm_again)(std::size_t rows, std::size_t columns, const float* x, const float* weight,
                         const float* inverse_deviation, float* y);
  void (*rms_norm_backward)(const NormBackward& arguments);

  /// x, in place.
  void (*rotate)(const Rotation& arguments, float* x);

  /// Each row of x has the gate's columns, then as many of what goes through it:
  /// y = gate * logistic(gate) * rest.
  void (*swiglu)(std::size_t rows, std::size_t columns, const float* x, float* y);
  /// y once more, and the gradient of x from that of y.
  void (*swiglu_backward)(std::size_t rows, std::size_t columns, const float* x, const float* dy,
                          float* y, float* dx);

  /// y += bias, to each row.
  void (*add_bias)(std::size_t rows, std::size_t columns, const float* bias, float* y);
  /// y += bias + residual.
  void (*add_bias_and_residual)(std::size_t rows, std::size_t columns, const float* bias,
                                const float* residual, float* y);
  /// sums += the sum of y's rows.
  void (*add_column_sums)(std::size_t rows, std::size_t columns, const float* y, float* sums);
  /// x += bias; y = gelu(x).
  void (*bias_gelu)(std::size_t rows, std::size_t columns, const float* bias, float* x, float* y);
  /// y = gelu(x), gradient *= gelu'(x), dbias += the sum of gradient's rows.
  void (*gelu_backward)(std::size_t rows, std::size_t columns, const float* x, float* gradient,
                        float* y, float* dbias);

  /// scores become exp(scale * scores - largest), zero where a row may not see.
  void (*causal_softmax)(const CausalScores& arguments, float* largest, float* inverse_sum);
  /// From raw scores again: scores become probabilities, `gradient` (of the probabilities, same
  /// stride) becomes that of the raw scores. delta: the row's sum of probability * gradient.
  void (*causal_softmax_backward)(const CausalScores& arguments, const float* largest,
                                  const float* inverse_sum, const float* delta, float* gradient);
  /// Row r of x *= factors[r].
  void (*scale_rows)(std::size_t rows, std::size_t columns, std::size_t stride,
                     const float* factors, float* x);
  /// dots[r] = row r of a times row r of b.
  void (*row_dots)(std::size_t rows, std::size_t columns, std::size_t stride, const float* a,
                   const float* b, float* dots);
  /// Sum over the rows of the cross-entropy in nats.
  double (*cross_entropy)(const LossRows& arguments);
};

/// The best table for this processor.
const Table& best();
/// All tables that this processor can run, the best last.
std::span<const Table* const> runnable();

}  // namespace holmes::model::kernels
