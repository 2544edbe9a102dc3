#pragma once

// Assertions for bugs, never for operating errors (those are Result values, see result.hpp).
// HOLMES_ASSERT stays on in release: a process with a broken invariant stops rather than train on.
// HOLMES_DCHECK is for inner loops of kernels and vanishes when NDEBUG is set.

namespace holmes {

/// Prints where and what failed, and `detail` if there is one, to stderr; then aborts.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line,
                                   const char* detail);

}  // namespace holmes

#define HOLMES_ASSERT(condition, detail) \
  (static_cast<bool>(condition)          \
       ? static_cast<void>(0)            \
       : ::holmes::assertion_failed(#condition, __FILE__, __LINE__, detail))

#ifdef NDEBUG
#define HOLMES_DCHECK(condition) static_cast<void>(0)
#else
#define HOLMES_DCHECK(condition) HOLMES_ASSERT(condition, "")
#endif
