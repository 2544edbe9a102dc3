#pragma once

// A device's own memory, kept for reuse: what is given back waits for the next request of its size,
// since asking the driver takes long and waits for the device. When the driver has no more, what is
// kept goes back to it first. Safe to reuse at once, because all work of a device is in one order.
//
// One thread at a time.

#include <map>
#include <memory>
#include <vector>

#include "cuda/device.hpp"
#include "holmes/base/result.hpp"

namespace holmes::model::cuda {

class MemoryPool {
 public:
  struct Stats {
    std::size_t bytes_held = 0;  ///< Taken from the driver, lent or kept.
    std::size_t bytes_lent = 0;
    std::size_t bytes_peak = 0;  ///< The most that was held at once.
    std::uint64_t allocation_count = 0;
  };

  /// Memory that goes back to the pool with the handle.
  class Loan {
   public:
    Loan() = default;
    Loan(Loan&& other) noexcept;
    Loan& operator=(Loan&& other) noexcept;
    ~Loan();
    template <class T = float>
    T* as() const {
      return static_cast<T*>(memory_);
    }

   private:
    friend class MemoryPool;
    Loan(MemoryPool& pool, void* memory, std::size_t capacity)
        : pool_(&pool), memory_(memory), capacity_(capacity) {}

    MemoryPool* pool_ = nullptr;
    void* memory_ = nullptr;
    std::size_t capacity_ = 0;
  };

  explicit MemoryPool(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  /// All loans are back.
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// kOutOfResources says how much was asked for, is free and is held.
  Result<Loan> borrow(std::size_t bytes);
  const Stats& stats() const { return stats_; }

 private:
  void give_back(void* memory, std::size_t capacity);
  void drop_kept();

  const std::shared_ptr<Device> device_;
  std::map<std::size_t, std::vector<void*>> kept_;  // by capacity
  Stats stats_;
};

/// "1.5 GiB", for messages.
std::string size_text(std::size_t bytes);
/// What is to be said when `bytes` of a device's memory are not to be had.
std::string shortage(std::size_t bytes, FreeMemory memory);

}  // namespace holmes::model::cuda
