#pragma once

// `holmes simulate`: what a job would take, where the time goes, and what happens when something
// changes. Nothing is started.

#include "cli.hpp"
#include "console.hpp"

namespace holmes::launcher {

int simulate(const SimulateCommand& command, Console& console);

}  // namespace holmes::launcher
