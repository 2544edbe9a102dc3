// Compiled once for each instruction set, with HOLMES_KERNEL_TABLE naming the table it defines.
#include "kernels/kernels.hpp"

#include "kernels/llama_kernels.hpp"
#include "kernels/optimizer_kernels.hpp"
#include "kernels/rowwise_kernels.hpp"
#include "kernels/softmax_kernels.hpp"

#define HOLMES_STRING_INNER(x) #x
#define HOLMES_STRING(x) HOLMES_STRING_INNER(x)

namespace holmes::model::kernels {

extern const Table HOLMES_KERNEL_TABLE;
const Table HOLMES_KERNEL_TABLE = {
    .name = HOLMES_STRING(HOLMES_KERNEL_TABLE),
    .add = add,
    .sum_of_squares = sum_of_squares,
    .adamw = adamw,
    .layer_norm = layer_norm,
    .layer_norm_again = layer_norm_again,
    .layer_norm_backward = layer_norm_backward,
    .rms_norm = rms_norm,
    .rms_norm_again = rms_norm_again,
    .rms_norm_backward = rms_norm_backward,
    .rotate = rotate,
    .swiglu = swiglu,
    .swiglu_backward = swiglu_backward,
    .add_bias = add_bias,
    .add_bias_and_residual = add_bias_and_residual,
    .add_column_sums = add_column_sums,
    .bias_gelu = bias_gelu,
    .gelu_backward = gelu_backward,
    .causal_softmax = causal_softmax,
    .causal_softmax_backward = causal_softmax_backward,
    .scale_rows = scale_rows,
    .row_dots = row_dots,
    .cross_entropy = cross_entropy,
};

}  // namespace holmes::model::kernels
