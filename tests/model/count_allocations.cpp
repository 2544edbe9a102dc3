#include "count_allocations.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {
constexpr std::size_t kLargeBytes = 4096;
std::atomic<std::uint64_t> count{0};
std::atomic<std::uint64_t> large_count{0};

void note(std::size_t bytes) {
  ++count;
  if (bytes >= kLargeBytes) ++large_count;
}

void* counted(std::size_t bytes, std::size_t alignment) {
  note(bytes);
  void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

void* operator new(std::size_t bytes) {
  return counted(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
// std::stable_sort takes its buffer by this form and gives it back by the plain operator delete;
// were one ours and the other a sanitizer's, they would not match.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  note(bytes);
  return std::malloc(bytes);
}
// And Buffer takes its memory by this one.
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace holmes {

std::uint64_t allocation_count() {
  return count.load();
}

std::uint64_t large_allocation_count() {
  return large_count.load();
}

}  // namespace holmes
