#pragma once

// GPUs of NVIDIA's, by a plugin that is loaded when it is first asked for: neither CUDA nor a
// driver is needed to start a program that links this. Unproved on a GPU: see docs/gpu.md.
//
// Threads: as gpt.hpp says of engines; these functions may be called from any thread.

#include <cstdint>
#include <memory>
#include <string>

#include "holmes/base/result.hpp"
#include "holmes/model/gpt.hpp"

namespace holmes::model {

struct CudaOptions {
  std::uint32_t device = 0;  ///< Among those that CUDA shows: CUDA_VISIBLE_DEVICES counts.
  /// Matrix products with 10 bits of mantissa: several times as fast, and not the fp32 results.
  bool tf32 = false;
};

/// How many devices CUDA shows. kUnavailable says what is missing: the plugin, a library, the
/// driver, a device.
Result<std::uint32_t> cuda_device_count();

struct CudaFacts {
  std::string name;          ///< "cuda device 0 (NVIDIA ...)".
  std::string architecture;  ///< "sm_90".
  std::uint64_t memory_bytes = 0;
  double fp32_tflops = 0;  ///< What the processors can do at their highest clock; no tensor cores.
  double memory_gb_s = 0;
  bool shares_memory = false;  ///< Else every operation copies what it reads and writes.
};
Result<CudaFacts> cuda_facts(std::uint32_t device);

/// The engine of one device.
Result<std::unique_ptr<Engine>> make_cuda_engine(const CudaOptions& options);

}  // namespace holmes::model
