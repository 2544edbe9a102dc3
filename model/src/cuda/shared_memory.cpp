#include "cuda/shared_memory.hpp"

#include "cuda/memory_pool.hpp"

namespace holmes::model::cuda {

Result<void*> SharedMemory::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  // The driver would move to the host what does not fit, and every step would wait for it.
  const FreeMemory memory = device_->free_memory();
  if (in_place_ && bytes > memory.free)
    return Error(
        ErrorCode::kOutOfResources,
        shortage(bytes, memory) + "; set train.micro_batch lower, or train on more devices");
  Outcome outcome;
  void* block = device_->allocate(MemoryKind::kShared, bytes, outcome);
  if (outcome.code == Outcome::Code::kOutOfMemory)
    return Error(ErrorCode::kOutOfResources, shortage(bytes, memory));
  if (!outcome.done()) return Error(ErrorCode::kUnavailable, outcome.text);
  blocks_[static_cast<const std::byte*>(block)] = bytes;
  return block;
}

void SharedMemory::release(void* memory) {
  const std::lock_guard lock(mutex_);
  blocks_.erase(static_cast<const std::byte*>(memory));
  device_->release(MemoryKind::kShared, memory);
}

bool SharedMemory::is_in_place(const void* memory) const {
  if (!in_place_) return false;
  const auto* at = static_cast<const std::byte*>(memory);
  const std::lock_guard lock(mutex_);
  auto block = blocks_.upper_bound(at);
  if (block == blocks_.begin()) return false;
  --block;
  return at < block->first + block->second;
}

}  // namespace holmes::model::cuda
