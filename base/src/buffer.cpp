#include "holmes/base/buffer.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <vector>

namespace holmes {

namespace detail {

struct PoolState {
  PoolState(std::size_t max, std::shared_ptr<BufferMemory> source)
      : bytes_max(max), memory(std::move(source)) {}
  ~PoolState();
  Result<BufferBlock*> new_block(std::size_t capacity) const;
  /// Gives the system what is free beyond `wanted` blocks. The mutex is held.
  void drop_free(const std::map<std::size_t, std::size_t>& wanted);

  const std::size_t bytes_max;
  const std::shared_ptr<BufferMemory> memory;  // null: the system's
  std::mutex mutex;
  std::map<std::size_t, std::vector<BufferBlock*>> free_by_capacity;  // guarded by mutex
  BufferPool::Stats stats;                                            // guarded by mutex
  bool closed = false;  // guarded by mutex; set when the pool is gone: blocks are freed, not kept
};

/// The header of a block; the payload follows it, aligned, or lies in memory of its own.
struct alignas(Buffer::kAlignment) BufferBlock {
  std::atomic<std::uint32_t> handle_count{1};
  std::size_t size = 0;
  std::size_t capacity = 0;
  std::shared_ptr<PoolState> pool;  // set while lent out by a pool
  std::byte* elsewhere = nullptr;   // the payload, if it does not follow
  BufferMemory* memory = nullptr;   // of that; the pool's state keeps it

  std::byte* payload() {
    return elsewhere != nullptr ? elsewhere : reinterpret_cast<std::byte*>(this + 1);
  }
};

namespace {

BufferBlock* new_block(std::size_t capacity) {
  void* memory = ::operator new (sizeof(BufferBlock) + capacity,
                                 std::align_val_t{Buffer::kAlignment}, std::nothrow);
  if (memory == nullptr) return nullptr;
  auto* block = new (memory) BufferBlock;
  block->capacity = capacity;
  return block;
}

void delete_block(BufferBlock* block) {
  if (block->memory != nullptr) block->memory->release(block->elsewhere);
  block->~BufferBlock();
  ::operator delete (block, std::align_val_t{Buffer::kAlignment});
}

/// Gives a block that nobody holds back to its pool, or to the system.
void release(BufferBlock* block) {
  const auto pool = std::move(block->pool);
  if (pool == nullptr) return delete_block(block);
  std::unique_lock lock(pool->mutex);
  pool->stats.bytes_lent -= block->capacity;
  --pool->stats.buffers_lent;
  if (!pool->closed) {
    pool->free_by_capacity[block->capacity].push_back(block);
    return;
  }
  pool->stats.bytes_held -= block->capacity;
  lock.unlock();
  delete_block(block);
}

/// Sizes are rounded up so that near sizes share blocks: powers of two, then whole pages.
std::size_t capacity_for(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  if (bytes <= Buffer::kAlignment) return Buffer::kAlignment;
  if (bytes <= kPage) return std::bit_ceil(bytes);
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

Result<BufferBlock*> PoolState::new_block(std::size_t capacity) const {
  auto* block = detail::new_block(memory == nullptr ? capacity : 0);
  if (block == nullptr)
    return Error(ErrorCode::kOutOfResources,
                 "the system has no memory for a buffer of " + std::to_string(capacity) + " bytes");
  if (memory == nullptr) return block;
  auto payload = memory->allocate(capacity);
  if (!payload) {
    delete_block(block);
    return payload.error();
  }
  block->capacity = capacity;
  block->elsewhere = static_cast<std::byte*>(*payload);
  block->memory = memory.get();
  return block;
}

void PoolState::drop_free(const std::map<std::size_t, std::size_t>& wanted) {
  for (auto& [capacity, blocks] : free_by_capacity) {
    const auto at = wanted.find(capacity);
    const auto keep = at == wanted.end() ? 0 : at->second;
    for (; blocks.size() > keep; blocks.pop_back()) {
      stats.bytes_held -= capacity;
      delete_block(blocks.back());
    }
  }
}

PoolState::~PoolState() {
  for (auto& [capacity, blocks] : free_by_capacity)
    for (auto* block : blocks) delete_block(block);
}

}  // namespace detail

using detail::BufferBlock;

Buffer::Buffer(const Buffer& other) : block_(other.block_) {
  if (block_ != nullptr) block_->handle_count.fetch_add(1, std::memory_order_relaxed);
}

Buffer::Buffer(Buffer&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}

Buffer& Buffer::operator=(Buffer other) noexcept {
  std::swap(block_, other.block_);
  return *this;
}

Buffer::~Buffer() {
  if (block_ != nullptr && block_->handle_count.fetch_sub(1, std::memory_order_acq_rel) == 1)
    detail::release(block_);
}

Buffer Buffer::allocate(std::size_t bytes) {
  auto* block = detail::new_block(detail::capacity_for(bytes));
  HOLMES_ASSERT(block != nullptr, "out of memory");
  block->size = bytes;
  return Buffer(block);
}

std::size_t Buffer::size() const {
  return block_ == nullptr ? 0 : block_->size;
}

const std::byte* Buffer::data() const {
  return block_ == nullptr ? nullptr : block_->payload();
}

bool Buffer::unique() const {
  return block_ != nullptr && block_->handle_count.load(std::memory_order_acquire) == 1;
}

std::span<std::byte> Buffer::mutable_bytes() {
  HOLMES_ASSERT(unique(), "write access to a buffer that is shared or empty");
  return {block_->payload(), block_->size};
}

BufferView::BufferView(Buffer buffer, std::size_t offset, std::size_t size)
    : buffer_(std::move(buffer)), offset_(offset), size_(size) {
  HOLMES_ASSERT(offset_ <= buffer_.size() && size_ <= buffer_.size() - offset_,
                "view beyond the end of its buffer");
}

std::span<const std::byte> BufferView::bytes() const {
  return buffer_ ? buffer_.bytes().subspan(offset_, size_) : std::span<const std::byte>{};
}

BufferView BufferView::part(std::size_t offset, std::size_t size) const {
  HOLMES_ASSERT(offset <= size_ && size <= size_ - offset, "part beyond the end of its view");
  return BufferView(buffer_, offset_ + offset, size);
}

void BufferDemand::add(std::size_t bytes, std::size_t count) {
  if (count != 0) count_by_capacity_[detail::capacity_for(bytes)] += count;
}

void BufferDemand::add(const BufferDemand& other) {
  for (const auto& [capacity, count] : other.count_by_capacity_)
    count_by_capacity_[capacity] += count;
}

std::size_t BufferDemand::bytes() const {
  std::size_t sum = 0;
  for (const auto& [capacity, count] : count_by_capacity_) sum += capacity * count;
  return sum;
}

BufferPool::BufferPool(std::size_t bytes_max, std::shared_ptr<BufferMemory> memory)
    : state_(std::make_shared<detail::PoolState>(bytes_max, std::move(memory))) {}

BufferPool::~BufferPool() {
  const std::lock_guard lock(state_->mutex);
  state_->closed = true;
}

Result<Buffer> BufferPool::acquire(std::size_t bytes) {
  const std::size_t capacity = detail::capacity_for(bytes);
  const std::lock_guard lock(state_->mutex);
  auto& stats = state_->stats;
  auto& free = state_->free_by_capacity[capacity];
  BufferBlock* block = nullptr;
  if (!free.empty()) {
    block = free.back();
    free.pop_back();
  } else {
    if (capacity > state_->bytes_max - stats.bytes_held)
      return Error(ErrorCode::kOutOfResources,
                   "buffer pool: " + std::to_string(bytes) + " bytes asked for, " +
                       std::to_string(stats.bytes_held) + " of at most " +
                       std::to_string(state_->bytes_max) + " held");
    HOLMES_TRY_ASSIGN(block, state_->new_block(capacity));
    stats.bytes_held += capacity;
    ++stats.allocation_count;
  }
  block->handle_count.store(1, std::memory_order_relaxed);
  block->size = bytes;
  block->pool = state_;
  stats.bytes_lent += capacity;
  ++stats.buffers_lent;
  return Buffer(block);
}

Status BufferPool::reserve(const BufferDemand& demand) {
  const std::lock_guard lock(state_->mutex);
  auto& stats = state_->stats;
  auto& free = state_->free_by_capacity;
  const auto missing = [&](std::size_t capacity, std::size_t count) {
    return count - std::min(count, free[capacity].size());
  };
  std::size_t bytes = 0;
  for (const auto& [capacity, count] : demand.count_by_capacity_)
    bytes += missing(capacity, count) * capacity;
  if (bytes > state_->bytes_max - stats.bytes_held) state_->drop_free(demand.count_by_capacity_);
  if (bytes > state_->bytes_max - stats.bytes_held)
    return Error(ErrorCode::kOutOfResources, "buffer pool: " + std::to_string(bytes) +
                                                 " bytes more are needed, " +
                                                 std::to_string(stats.bytes_held) + " of at most " +
                                                 std::to_string(state_->bytes_max) + " are held");
  for (const auto& [capacity, count] : demand.count_by_capacity_)
    for (auto left = missing(capacity, count); left > 0; --left) {
      HOLMES_TRY_ASSIGN(BufferBlock * block, state_->new_block(capacity));
      stats.bytes_held += capacity;
      ++stats.allocation_count;
      free[capacity].push_back(block);
    }
  return {};
}

BufferPool::Stats BufferPool::stats() const {
  const std::lock_guard lock(state_->mutex);
  return state_->stats;
}

}  // namespace holmes
