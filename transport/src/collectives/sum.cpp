#include "collectives/sum.hpp"

namespace holmes::transport::collectives {

void sum_baseline(float* out, const float* a, const float* b, std::size_t count);
#ifdef HOLMES_SUM_VARIANTS
void sum_avx2(float* out, const float* a, const float* b, std::size_t count);
void sum_avx512(float* out, const float* a, const float* b, std::size_t count);
#endif

SumFunction best_sum() {
#ifdef HOLMES_SUM_VARIANTS
  // Each variant is compiled for a whole level of x86-64, so all that the compiler may use of it
  // must be there.
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512cd");
  if (v4) return sum_avx512;
  if (v3) return sum_avx2;
#endif
  return sum_baseline;
}

}  // namespace holmes::transport::collectives
