#pragma once

// A product as BLAS libraries want it: their matrices are column-major, so that what lies in memory
// row by row is to them the transpose. out^T = right^T left^T: their first operand is our right
// one. Apart from the plugin, so that tests without a GPU take their products this way too.

#include "cuda/device.hpp"

namespace holmes::model::cuda {

struct ColumnMajor {
  /// As it lies in memory: `rows` numbers side by side, columns `stride` apart.
  struct Operand {
    const float* data;
    std::size_t rows;
    std::size_t columns;
    std::size_t stride;
    bool transposed;  ///< It takes part as its transpose.
  };
  Operand first;
  Operand second;
  std::size_t rows;  ///< Of the result, and of a bias.
  std::size_t columns;
};

inline ColumnMajor column_major(const Product& p) {
  const bool r = p.right.transposed;
  const bool l = p.left.transposed;
  return {
      .first = {p.right.data, r ? p.inner : p.columns, r ? p.columns : p.inner, p.right.stride, r},
      .second = {p.left.data, l ? p.rows : p.inner, l ? p.inner : p.rows, p.left.stride, l},
      .rows = p.columns,
      .columns = p.rows};
}

}  // namespace holmes::model::cuda
