#pragma once

// Counts what the program takes through operator new, to show that a steady state takes nothing.
// In a file of its own, so that the compiler does not see through the replaced operators.

#include <cstdint>

namespace holmes {

/// Calls of operator new so far, on all threads.
std::uint64_t allocation_count();
/// Those of them that were for at least 4 KiB: tensors and pieces of them, not notes about them.
std::uint64_t large_allocation_count();

}  // namespace holmes
