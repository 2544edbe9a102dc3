// Goal: a GPU computes what the reference computes: every operator, forward and backward, in whole
// models, the same bits each time, and a few steps of training as the CPU takes them. Skipped, with
// the reason, where there is no GPU.
#include "engine_suite.hpp"
#include "holmes/model/cuda.hpp"

namespace holmes::model {

Result<std::unique_ptr<Engine>> engine_under_test() {
  return make_cuda_engine({});
}

}  // namespace holmes::model
