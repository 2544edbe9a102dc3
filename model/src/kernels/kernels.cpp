#include "kernels/kernels.hpp"

#include <array>

namespace holmes::model::kernels {

extern const Table baseline;
#ifdef HOLMES_KERNEL_VARIANTS
extern const Table avx2;
extern const Table avx512;
#endif

namespace {

constexpr std::size_t kTableCountMax = 3;

struct Runnable {
  std::array<const Table*, kTableCountMax> tables{};
  std::size_t count = 0;

  Runnable() {
    tables[count++] = &baseline;
#ifdef HOLMES_KERNEL_VARIANTS
    // Each table is compiled for a whole level of x86-64, so all of the level must be there.
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi2");
    if (v3) tables[count++] = &avx2;
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512cd");
    if (v4) tables[count++] = &avx512;
#endif
  }
};

}  // namespace

std::span<const Table* const> runnable() {
  static const Runnable all;
  return {all.tables.data(), all.count};
}

const Table& best() {
  return *runnable().back();
}

}  // namespace holmes::model::kernels
