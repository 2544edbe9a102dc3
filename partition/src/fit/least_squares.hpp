#pragma once

// Least squares in a box for a handful of unknowns and functions that are neither smooth nor cheap.

#include <functional>
#include <vector>

namespace holmes::partition {

using Residuals = std::function<std::vector<double>(const std::vector<double>&)>;

/// The point within [low, high] in each direction where the sum of squares is least, by pattern
/// search from each of the starts.
std::vector<double> least_squares(const Residuals& residuals,
                                  const std::vector<std::vector<double>>& starts, double low,
                                  double high);

/// Half widths of 95 % intervals around the best point by the linearised model and Student's t;
/// infinite where there are no more residuals than unknowns, or one has no effect there.
std::vector<double> half_widths(const Residuals& residuals, const std::vector<double>& best);

}  // namespace holmes::partition
