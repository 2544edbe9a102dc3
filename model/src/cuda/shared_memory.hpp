#pragma once

// Buffers that host and device use: parameters, gradients, moments, stashes and activations of a
// device come from here, so that stages and replicas hold them as they hold any buffer. Where the
// device shares memory, it works on them in place.
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
  SharedMemory(std::shared_ptr<Device> device, bool in_place)
      : device_(std::move(device)), in_place_(in_place) {}

  Result<void*> allocate(std::size_t bytes) override;
  void release(void* memory) override;
  /// Whether the device can use it where it lies.
  bool is_in_place(const void* memory) const;

 private:
  const std::shared_ptr<Device> device_;
  const bool in_place_;
  mutable std::mutex mutex_;
  std::map<const std::byte*, std::size_t> blocks_;  // guarded by mutex_: size by beginning
};

}  // namespace holmes::model::cuda
