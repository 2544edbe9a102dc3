#include "cuda/shared_memory.hpp"

#include "cuda/memory_pool.hpp"

namespace holmes::model::cuda {

Result<void*> SharedMemory::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const bool on_device = kind_ == MemoryKind::kShared;
  // The driver would move to the host what does not fit, and every step would wait for it.
  const FreeMemory memory = device_->free_memory();
  const Error none(ErrorCode::kOutOfResources,
                   on_device ? shortage(bytes, memory)
                             : size_text(bytes) + " of pinned host memory are not to be had");
  if (on_device && bytes > memory.free) return none;
  Outcome outcome;
  void* block = device_->allocate(kind_, bytes, outcome);
  if (outcome.code == Outcome::Code::kOutOfMemory) return none;
  if (!outcome.done()) return Error(ErrorCode::kUnavailable, outcome.text);
  blocks_[static_cast<const std::byte*>(block)] = bytes;
  return block;
}

void SharedMemory::release(void* memory) {
  const std::lock_guard lock(mutex_);
  blocks_.erase(static_cast<const std::byte*>(memory));
  device_->release(kind_, memory);
}

bool SharedMemory::is_in_place(const void* memory) const {
  if (kind_ != MemoryKind::kShared) return false;
  const auto* at = static_cast<const std::byte*>(memory);
  const std::lock_guard lock(mutex_);
  auto block = blocks_.upper_bound(at);
  if (block == blocks_.begin()) return false;
  --block;
  return at < block->first + block->second;
}

}  // namespace holmes::model::cuda
