#include "cpu/layers.hpp"
#include "holmes/model/gpt.hpp"
#include "kernels/kernels.hpp"

// oneDNN's thread count is that of GCC's OpenMP for the calling thread. Declared here, since omp.h
// belongs to the compiler and clang brings none that fits GCC's library.
extern "C" void omp_set_num_threads(int count);
extern "C" int omp_get_max_threads();

namespace holmes::model {

void cpu::use_one_thread() {
  if (omp_get_max_threads() != 1) omp_set_num_threads(1);
}

std::string instruction_set() {
  return kernels::best().name;
}

void prepare_compute_thread() {
  cpu::use_one_thread();
}

}  // namespace holmes::model
