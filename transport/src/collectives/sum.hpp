#pragma once

// Sums of fp32 with the widest instructions that the machine has. One rounding for each element:
// the same bits with each.

#include <cstddef>

namespace holmes::transport::collectives {

/// out[i] = a[i] + b[i]. `out` may be `a` or `b`, but not overlap them otherwise.
using SumFunction = void (*)(float* out, const float* a, const float* b, std::size_t count);

SumFunction best_sum();

}  // namespace holmes::transport::collectives
