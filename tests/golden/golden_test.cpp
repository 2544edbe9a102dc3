// Goal: each engine computes the same models as PyTorch; the one for GPUs with its kernels
// emulated.
#include "cuda/engine.hpp"
#include "emulated_device.hpp"
#include "golden_suite.hpp"

namespace holmes::model {
namespace {

Result<std::unique_ptr<Engine>> reference() {
  return make_reference_engine();
}
Result<std::unique_ptr<Engine>> cpu() {
  return make_cpu_engine();
}
Result<std::unique_ptr<Engine>> emulated() {
  static cuda::Emulation emulation;
  return cuda::make_device_engine(std::make_unique<cuda::EmulatedDevice>(emulation));
}

INSTANTIATE_TEST_SUITE_P(
    Models, Golden,
    testing::Values(
        Case{"gpt2_reference", reference, kGpt2, "tiny_gpt2.safetensors"},
        Case{"gpt2_cpu", cpu, kGpt2, "tiny_gpt2.safetensors"},
        Case{"gpt2_emulated", emulated, kGpt2, "tiny_gpt2.safetensors"},
        Case{"llama_reference", reference, llama(), "tiny_llama.safetensors"},
        Case{"llama_cpu", cpu, llama(), "tiny_llama.safetensors"},
        Case{"llama_emulated", emulated, llama(), "tiny_llama.safetensors"},
        Case{"tied_llama_reference", reference, tied_llama(), "tiny_llama_tied.safetensors"},
        Case{"tied_llama_cpu", cpu, tied_llama(), "tiny_llama_tied.safetensors"},
        Case{"tied_llama_emulated", emulated, tied_llama(), "tiny_llama_tied.safetensors"}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace holmes::model
