#include "holmes/model/gpt.hpp"

// oneDNN's thread count is that of GCC's OpenMP for the calling thread. Declared here, since omp.h
// belongs to the compiler and clang brings none that fits GCC's library.
extern "C" void omp_set_num_threads(int count);

namespace holmes::model {

void prepare_compute_thread() {
  omp_set_num_threads(1);
}

}  // namespace holmes::model
