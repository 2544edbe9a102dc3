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

struct Table {
  const char* name;
  /// destination += source.
  void (*add)(std::size_t count, float* destination, const float* source);
  double (*sum_of_squares)(std::size_t count, const float* values);
  void (*adamw)(const AdamWFactors& factors, std::size_t count, float* parameters,
                const float* gradients, float* exp_avg, float* exp_avg_sq);
};

/// The best table for this processor.
const Table& best();
/// All tables that this processor can run, the best last.
std::span<const Table* const> runnable();

}  // namespace holmes::model::kernels
