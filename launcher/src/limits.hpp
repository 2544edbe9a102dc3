#pragma once

// What the system lets a process have, and what is said when it lets it have too little.

#include <cstddef>

#include "holmes/base/result.hpp"

namespace holmes::launcher {

/// As many descriptors as this process may ask for, and stacks that suffice for all threads made
/// from here on. Children inherit the former.
void raise_limits();

/// kOutOfResources when a job on so many hosts would run out of descriptors while it starts.
Status check_descriptors(std::size_t hosts);

/// Memory, threads and descriptors are asked for in many places, also by libraries: where one is
/// refused and nobody can go on without it, the process says so in one line and exits 1.
void say_when_resources_end();

}  // namespace holmes::launcher
