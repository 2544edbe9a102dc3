#pragma once

// `holmes launch`: `holmes train` with the hosts' agents on other machines.

#include "train.hpp"

namespace holmes::launcher {

/// Runs the job to its end; returns the exit code.
int launch(const LaunchCommand& command, const TrainServices& services);

}  // namespace holmes::launcher
