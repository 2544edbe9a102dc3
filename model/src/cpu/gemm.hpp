#pragma once

// Matrix products by oneDNN. All matrices are row-major fp32 with a row stride; `transposed` means
// that the operand is the transpose of what is stored.
//
// oneDNN's sgemm is used and not its matmul primitive: on the shapes of a GPT they are equally
// fast, and sgemm needs no primitive, memory object or scratchpad for each shape.

#include <cstddef>

namespace holmes::model::cpu {

struct Operand {
  const float* data;
  std::size_t stride;
  bool transposed = false;
};
struct Target {
  float* data;
  std::size_t stride;
};
struct GemmShape {
  std::size_t rows;
  std::size_t columns;
  std::size_t inner;
};

/// c = factor * a * b, or c += factor * a * b.
void multiply(const GemmShape& shape, Operand a, Operand b, Target c, float factor = 1);
void multiply_add(const GemmShape& shape, Operand a, Operand b, Target c, float factor = 1);

}  // namespace holmes::model::cpu
