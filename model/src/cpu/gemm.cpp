#include "cpu/gemm.hpp"

#include <oneapi/dnnl/dnnl.h>

#include "holmes/base/assert.hpp"

namespace holmes::model::cpu {
namespace {

void gemm(const GemmShape& shape, Operand a, Operand b, float beta, Target c, float factor) {
  const auto size = [](std::size_t value) { return static_cast<dnnl_dim_t>(value); };
  const dnnl_status_t status =
      dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', size(shape.rows),
                 size(shape.columns), size(shape.inner), factor, a.data, size(a.stride), b.data,
                 size(b.stride), beta, c.data, size(c.stride));
  HOLMES_ASSERT(status == dnnl_success, "oneDNN refused a matrix product");
}

}  // namespace

void multiply(const GemmShape& shape, Operand a, Operand b, Target c, float factor) {
  gemm(shape, a, b, 0, c, factor);
}

void multiply_add(const GemmShape& shape, Operand a, Operand b, Target c, float factor) {
  gemm(shape, a, b, 1, c, factor);
}

}  // namespace holmes::model::cpu
