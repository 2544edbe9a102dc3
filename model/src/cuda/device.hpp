#pragma once

// A device as the engine sees it: memory, products of matrices, and kernels, all in one order (one
// stream). The plugin implements it with CUDA and cuBLASLt (plugin.cu), tests with plain loops.
//
// It is the plugin's binary interface: only plain data cross it, no type of the standard library.
// Calls come from one thread at a time; memory is allocated and freed from any.

#include <cstddef>
#include <cstdint>

#include "cuda/kernels/all.hpp"

namespace holmes::model::cuda {

/// What a call came to. The text is what the driver or library said.
struct Outcome {
  enum class Code : std::uint32_t { kDone, kOutOfMemory, kFailed };
  static constexpr std::size_t kTextBytes = 256;

  Code code = Code::kDone;
  char text[kTextBytes] = {};
  bool done() const { return code == Code::kDone; }
};

/// Rows of a matrix in memory, `stride` elements apart; transposed: it takes part as its transpose.
struct Matrix {
  const float* data;
  std::size_t stride;
  bool transposed = false;
};

/// out = scale * left * right + added + bias: rows x columns, a sum over `inner` products each.
struct Product {
  std::size_t rows;
  std::size_t columns;
  std::size_t inner;
  Matrix left;
  Matrix right;
  float* out;
  std::size_t out_stride;
  const float* added = nullptr;  ///< With the stride of out, which it may be; null: none.
  const float* bias = nullptr;   ///< Of each column; null: none. Asks for a scale of 1.
  float scale = 1;
};

enum class MemoryKind : std::uint32_t {
  kDevice,  ///< The device's alone.
  kShared,  ///< The host may read and write it too, while the device does nothing with it.
  kPinned,  ///< The host's, which the device copies from and to.
};

struct DeviceFacts {
  static constexpr std::size_t kNameBytes = 128;

  char name[kNameBytes] = {};
  char architecture[32] = {};  ///< "sm_90".
  std::uint64_t memory_bytes = 0;
  std::uint32_t processors = 0;
  double peak_tflops = 0;  ///< fp32 multiply-and-adds, two operations each, at the highest clock.
  double memory_gb_s = 0;
  /// There is shared memory: it lies on the device, and its pages move when the host touches them.
  bool shares_memory = false;
};

struct FreeMemory {
  std::uint64_t free = 0;
  std::uint64_t total = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual void facts(DeviceFacts& out) = 0;
  virtual void* allocate(MemoryKind kind, std::size_t bytes, Outcome& outcome) = 0;
  virtual void release(MemoryKind kind, void* memory) = 0;
  virtual FreeMemory free_memory() = 0;
  /// Between host and device, either way, in order with the rest; the host's side may be used again
  /// at once.
  virtual void copy(void* to, const void* from, std::size_t bytes, Outcome& outcome) = 0;
  virtual void clear(void* memory, std::size_t bytes, Outcome& outcome) = 0;
  virtual void multiply(const Product& product, Outcome& outcome) = 0;
  virtual void launch(KernelId id, const void* kernel, Outcome& outcome) = 0;
  /// Waits until everything before is done.
  virtual void wait(Outcome& outcome) = 0;
};

struct DeviceOptions {
  std::uint32_t index = 0;  ///< Among the devices that CUDA shows.
  bool tf32 = false;        ///< Products with 10 bits of mantissa: faster, and other results.
};

/// Grows with every change of what this header or a kernel's arguments are.
constexpr std::uint32_t kPluginVersion = 1;

/// The plugin's symbols. open: null with an outcome; what it gives is closed by its destructor.
using PluginVersion = std::uint32_t();
using PluginCount = std::uint32_t(Outcome*);
using PluginOpen = Device*(const DeviceOptions*, Outcome*);
constexpr const char* kVersionSymbol = "holmes_cuda_version";
constexpr const char* kCountSymbol = "holmes_cuda_count";
constexpr const char* kOpenSymbol = "holmes_cuda_open";

}  // namespace holmes::model::cuda
