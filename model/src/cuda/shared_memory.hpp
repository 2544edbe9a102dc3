#pragma once

// Buffers that host and device use, of either kind: stages and replicas hold them as they hold any
// buffer. Parameters, gradients, moments, stashes and activations lie in shared memory, where the
// device works in place, if it can share; what other hosts send or get lies in pinned memory.
//
// From any thread. Buffers may outlive the engine.

#include <map>
#include <memory>
#include <mutex>

#include "cuda/device.hpp"
#include "holmes/base/buffer.hpp"

namespace holmes::model::cuda {

class SharedMemory final : public BufferMemory {
 public:
  SharedMemory(std::shared_ptr<Device> device, MemoryKind kind)
      : device_(std::move(device)), kind_(kind) {}

  Result<void*> allocate(std::size_t bytes) override;
  void release(void* memory) override;
  /// Whether the device can use it where it lies.
  bool is_in_place(const void* memory) const;

 private:
  const std::shared_ptr<Device> device_;
  const MemoryKind kind_;
  mutable std::mutex mutex_;
  std::map<const std::byte*, std::size_t> blocks_;  // guarded by mutex_: size by beginning
};

}  // namespace holmes::model::cuda
