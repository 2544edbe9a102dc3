#pragma once

// What one AdamW update comes to for each element: the same for the CPU's kernels and a GPU's.

#include "holmes/model/optimizer.hpp"
#include "kernels/kernels.hpp"

namespace holmes::model {

/// What AdamW's kernels need for each element.
kernels::AdamWFactors adamw_factors(const AdamW& config, const AdamWStep& step);

}  // namespace holmes::model
