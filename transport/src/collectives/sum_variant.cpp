// One source, compiled for several instruction sets: HOLMES_SUM is the function's name.
#include <cstddef>

namespace holmes::transport::collectives {

void HOLMES_SUM(float* out, const float* a, const float* b, std::size_t count);

void HOLMES_SUM(float* out, const float* a, const float* b, std::size_t count) {
#ifdef __clang__
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (std::size_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
}

}  // namespace holmes::transport::collectives
