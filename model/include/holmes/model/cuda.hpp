#pragma once

// GPUs of NVIDIA's, by a plugin that is loaded when it is first asked for: neither CUDA nor a
// driver is needed to start a program that links this. Unproved on a GPU: see docs/gpu.md.
//
// Threads: as gpt.hpp says of engines; these functions may be called from any thread.

#include <cstdint>
#include <memory>

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

/// The engine of one device.
Result<std::unique_ptr<Engine>> make_cuda_engine(const CudaOptions& options);

}  // namespace holmes::model
