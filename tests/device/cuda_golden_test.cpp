// Goal: a GPU computes the same models as PyTorch. Skipped, with the reason, where there is none.
#include "golden_suite.hpp"
#include "holmes/model/cuda.hpp"

namespace holmes::model {
namespace {

Result<std::unique_ptr<Engine>> cuda() {
  return make_cuda_engine({});
}

INSTANTIATE_TEST_SUITE_P(
    Models, Golden,
    testing::Values(Case{"gpt2_cuda", cuda, kGpt2, "tiny_gpt2.safetensors"},
                    Case{"llama_cuda", cuda, llama(), "tiny_llama.safetensors"},
                    Case{"tied_llama_cuda", cuda, tied_llama(), "tiny_llama_tied.safetensors"}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace holmes::model
