#pragma once

// `holmes simulate --fit CELLS`: constants of the cost model out of measured runs.

#include "cli.hpp"
#include "console.hpp"
#include "holmes/partition/fit.hpp"

namespace holmes::launcher {

/// A file of measured cells: one a line, "name, job file, cluster file, overrides, measure, value".
/// Paths are relative to the file, overrides are separated by spaces, and the measure is step_s,
/// samples_per_s or tflops_per_device (96-style). What follows '#' is for people.
Result<std::vector<partition::Cell>> read_cells(const std::filesystem::path& file,
                                                const std::vector<std::string>& overrides);

int fit(const SimulateCommand& command, Console& console);

}  // namespace holmes::launcher
