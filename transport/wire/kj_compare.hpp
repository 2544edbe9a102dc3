#pragma once

// Clang 16 follows C++20's later rule for rewritten comparisons (P2468), by which Cap'n Proto 0.9's
// own headers no longer compile. This declares what they miss; the build includes it first, for
// Clang only.

#include <kj/string.h>

namespace kj {

inline bool operator==(const char* a, const StringPtr& b) {
  return b.operator==(StringPtr(a));
}
inline bool operator!=(const char* a, const StringPtr& b) {
  return !b.operator==(StringPtr(a));
}

}  // namespace kj
