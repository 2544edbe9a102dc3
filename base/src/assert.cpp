#include "holmes/base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace holmes {

void assertion_failed(const char* expression, const char* file, int line, const char* detail) {
  std::fprintf(stderr, "%s:%d: assertion failed: %s%s%s\n", file, line, expression,
               *detail != '\0' ? ": " : "", detail);
  std::fflush(stderr);
  std::abort();
}

}  // namespace holmes
