#include "cuda/memory_pool.hpp"

#include <cstdio>
#include <utility>

namespace holmes::model::cuda {
namespace {

/// Near sizes share blocks; the driver gives whole pages of this size anyway when they are large.
std::size_t capacity_for(std::size_t bytes) {
  constexpr std::size_t kSmall = 512;
  constexpr std::size_t kLarge = std::size_t{1} << 20;
  const std::size_t unit = bytes < kLarge ? kSmall : kLarge;
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

MemoryPool::Loan::Loan(Loan&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      memory_(std::exchange(other.memory_, nullptr)),
      capacity_(other.capacity_) {}

MemoryPool::Loan& MemoryPool::Loan::operator=(Loan&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(memory_, other.memory_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

MemoryPool::Loan::~Loan() {
  if (pool_ != nullptr) pool_->give_back(memory_, capacity_);
}

MemoryPool::~MemoryPool() {
  HOLMES_ASSERT(stats_.bytes_lent == 0, "device memory outlives its pool");
  drop_kept();
}

Result<MemoryPool::Loan> MemoryPool::borrow(std::size_t bytes) {
  if (bytes == 0) return Loan();
  const std::size_t capacity = capacity_for(bytes);
  auto& kept = kept_[capacity];
  void* memory = nullptr;
  if (!kept.empty()) {
    memory = kept.back();
    kept.pop_back();
  } else {
    Outcome outcome;
    memory = device_->allocate(MemoryKind::kDevice, capacity, outcome);
    if (outcome.code == Outcome::Code::kOutOfMemory && stats_.bytes_held > stats_.bytes_lent) {
      drop_kept();
      outcome = {};
      memory = device_->allocate(MemoryKind::kDevice, capacity, outcome);
    }
    if (outcome.code == Outcome::Code::kOutOfMemory)
      return Error(ErrorCode::kOutOfResources, shortage(bytes, device_->free_memory()) + ", " +
                                                   size_text(stats_.bytes_lent) +
                                                   " are in use here for intermediate results");
    if (!outcome.done()) return Error(ErrorCode::kUnavailable, outcome.text);
    stats_.bytes_held += capacity;
    stats_.bytes_peak = std::max(stats_.bytes_peak, stats_.bytes_held);
    ++stats_.allocation_count;
  }
  stats_.bytes_lent += capacity;
  return Loan(*this, memory, capacity);
}

void MemoryPool::give_back(void* memory, std::size_t capacity) {
  kept_[capacity].push_back(memory);
  stats_.bytes_lent -= capacity;
}

void MemoryPool::drop_kept() {
  for (auto& [capacity, blocks] : kept_) {
    for (void* memory : blocks) device_->release(MemoryKind::kDevice, memory);
    stats_.bytes_held -= capacity * blocks.size();
    blocks.clear();
  }
}

std::string size_text(std::size_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  char text[48];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

std::string shortage(std::size_t bytes, FreeMemory memory) {
  return size_text(bytes) + " of device memory asked for, " + size_text(memory.free) + " of " +
         size_text(memory.total) + " free";
}

}  // namespace holmes::model::cuda
