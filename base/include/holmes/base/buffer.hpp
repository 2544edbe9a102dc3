#pragma once

// Buffer is a handle to reference-counted memory, aligned to 64 bytes. Copying a handle copies no
// bytes. What is shared is const: write access is handed out only while the handle is unique.
// BufferPool recycles blocks, so that a steady state allocates nothing.
//
// Threads: handles may be copied and dropped on any thread, pools may be used from any thread.
// One handle object belongs to one thread at a time. Handles may outlive their pool.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "holmes/base/result.hpp"

namespace holmes {

namespace detail {
struct BufferBlock;
struct PoolState;
}  // namespace detail

class Buffer {
 public:
  static constexpr std::size_t kAlignment = 64;

  Buffer() = default;
  Buffer(const Buffer& other);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer other) noexcept;
  ~Buffer();

  /// Memory outside any pool, uninitialised. Aborts when the system has none: use a pool where
  /// running short is an operating error.
  static Buffer allocate(std::size_t bytes);

  explicit operator bool() const { return block_ != nullptr; }
  std::size_t size() const;
  const std::byte* data() const;
  std::span<const std::byte> bytes() const { return {data(), size()}; }

  /// No other handle to this memory exists.
  bool unique() const;
  /// Write access. Asserts unique().
  std::span<std::byte> mutable_bytes();

  /// The bytes as elements of T; the size must be a multiple of sizeof(T).
  template <class T>
  std::span<const T> as() const {
    HOLMES_ASSERT(size() % sizeof(T) == 0, "buffer size is no multiple of the element size");
    return {reinterpret_cast<const T*>(data()), size() / sizeof(T)};
  }
  template <class T>
  std::span<T> mutable_as() {
    auto bytes = mutable_bytes();
    HOLMES_ASSERT(bytes.size() % sizeof(T) == 0, "buffer size is no multiple of the element size");
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

 private:
  friend class BufferPool;
  explicit Buffer(detail::BufferBlock* block) : block_(block) {}

  detail::BufferBlock* block_ = nullptr;
};

/// A read-only part of a buffer that keeps it alive: what a sender hands to a transport.
class BufferView {
 public:
  BufferView() = default;
  BufferView(Buffer buffer) : buffer_(std::move(buffer)), size_(buffer_ ? buffer_.size() : 0) {}
  BufferView(Buffer buffer, std::size_t offset, std::size_t size);

  std::size_t size() const { return size_; }
  std::span<const std::byte> bytes() const;
  const Buffer& buffer() const { return buffer_; }
  /// `size` bytes from `offset` of this view.
  BufferView part(std::size_t offset, std::size_t size) const;

 private:
  Buffer buffer_;
  std::size_t offset_ = 0;
  std::size_t size_ = 0;
};

/// Where a pool's memory comes from if not from the system: a device's, that host and device use.
/// Called from any thread.
class BufferMemory {
 public:
  virtual ~BufferMemory() = default;
  /// Aligned as buffers are; kOutOfResources says what there is.
  virtual Result<void*> allocate(std::size_t bytes) = 0;
  virtual void release(void* memory) = 0;
};

/// How many buffers of which sizes somebody will hold at once.
class BufferDemand {
 public:
  void add(std::size_t bytes, std::size_t count = 1);
  void add(const BufferDemand& other);
  /// Memory that all of them take together.
  std::size_t bytes() const;

 private:
  friend class BufferPool;
  std::map<std::size_t, std::size_t> count_by_capacity_;
};

class BufferPool {
 public:
  struct Stats {
    std::size_t bytes_held = 0;          ///< Taken from the system, lent out or kept for reuse.
    std::size_t bytes_lent = 0;          ///< In buffers that somebody holds.
    std::uint64_t buffers_lent = 0;      ///< Buffers that somebody holds.
    std::uint64_t allocation_count = 0;  ///< Times the system was asked for memory, ever.
  };

  /// A pool that holds at most `bytes_max` bytes, of `memory` or, if null, of the system.
  explicit BufferPool(std::size_t bytes_max, std::shared_ptr<BufferMemory> memory = nullptr);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// An uninitialised, unique buffer of exactly `bytes`; kOutOfResources when over the bound.
  Result<Buffer> acquire(std::size_t bytes);
  /// Takes from the system what `demand` lacks, so that no acquire() of it asks again; free memory
  /// that does not fit goes back if it must. kOutOfResources, with nothing taken: over the bound.
  Status reserve(const BufferDemand& demand);
  Stats stats() const;

 private:
  std::shared_ptr<detail::PoolState> state_;
};

}  // namespace holmes
