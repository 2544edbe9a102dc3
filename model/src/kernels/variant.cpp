// Compiled once for each instruction set, with HOLMES_KERNEL_TABLE naming the table it defines.
#include "kernels/kernels.hpp"

#include "kernels/optimizer_kernels.hpp"

#define HOLMES_STRING_INNER(x) #x
#define HOLMES_STRING(x) HOLMES_STRING_INNER(x)

namespace holmes::model::kernels {

extern const Table HOLMES_KERNEL_TABLE;
const Table HOLMES_KERNEL_TABLE = {
    .name = HOLMES_STRING(HOLMES_KERNEL_TABLE),
    .add = add,
    .sum_of_squares = sum_of_squares,
    .adamw = adamw,
};

}  // namespace holmes::model::kernels
