#pragma once

// What an engine's layers drive a device through. The first failure stays: from then on nothing is
// done any more, results are worthless, and status() says which operation of which device failed
// and what to do.
//
// One thread at a time.

#include <span>
#include <string>

#include "cuda/memory_pool.hpp"
#include "cuda/shared_memory.hpp"

namespace holmes::model::cuda {

class Session {
 public:
  explicit Session(std::unique_ptr<Device> device);

  const DeviceFacts& facts() const { return facts_; }
  const Status& status() const { return status_; }
  MemoryPool& pool() { return pool_; }
  const std::shared_ptr<SharedMemory>& shared() const { return shared_; }
  const std::shared_ptr<SharedMemory>& pinned() const { return pinned_; }

  template <class Kernel>
  void launch(const Kernel& kernel) {
    launch_any(IdOf<Kernel>::value, &kernel);
  }
  void multiply(const Product& product);
  void copy(void* to, const void* from, std::size_t bytes);
  void clear(void* memory, std::size_t bytes);
  /// Memory for an intermediate result; empty after a failure.
  MemoryPool::Loan borrow(std::size_t bytes);
  MemoryPool::Loan floats(std::size_t count) { return borrow(count * sizeof(float)); }

 private:
  friend class Operation;
  void launch_any(KernelId id, const void* kernel);
  void settle(const Outcome& outcome);
  void wait();

  const std::shared_ptr<Device> device_;
  DeviceFacts facts_;
  MemoryPool pool_;
  std::shared_ptr<SharedMemory> shared_;
  std::shared_ptr<SharedMemory> pinned_;
  std::string operation_;  // that runs
  Status status_;
};

/// What runs from here to the end of the scope, which waits for it. Operations do not nest.
class Operation {
 public:
  Operation(Session& session, std::string name);
  ~Operation();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

 private:
  Session& session_;
};

/// An operation's input where the device can read it: in place or as a copy. Empty: null.
template <class T>
class Reads {
 public:
  Reads(Session& session, std::span<const T> values) {
    if (values.empty() || session.shared()->is_in_place(values.data())) {
      data_ = values.data();
      return;
    }
    loan_ = session.borrow(values.size_bytes());
    session.copy(loan_.as<T>(), values.data(), values.size_bytes());
    data_ = loan_.as<T>();
  }
  const T* data() const { return data_; }

 private:
  MemoryPool::Loan loan_;
  const T* data_ = nullptr;
};

/// An operation's output; what the device has written is the host's too at the end of the scope.
template <class T>
class Writes {
 public:
  enum class Before { kUnread, kKept };

  Writes(Session& session, std::span<T> values, Before before = Before::kUnread)
      : session_(session), values_(values) {
    if (values.empty() || session.shared()->is_in_place(values.data())) {
      data_ = values.data();
      return;
    }
    loan_ = session.borrow(values.size_bytes());
    data_ = loan_.as<T>();
    if (before == Before::kKept) session.copy(data_, values.data(), values.size_bytes());
  }
  ~Writes() {
    if (loan_.as<T>() != nullptr) session_.copy(values_.data(), data_, values_.size_bytes());
  }
  Writes(const Writes&) = delete;
  Writes& operator=(const Writes&) = delete;
  T* data() const { return data_; }

 private:
  Session& session_;
  std::span<T> values_;
  MemoryPool::Loan loan_;
  T* data_ = nullptr;
};

/// Hands out consecutive parts of an array, each beginning where wide loads may.
template <class T>
class Parts {
 public:
  explicit Parts(T* memory) : next_(memory) {}
  T* take(std::size_t count) {
    T* part = next_;
    if (next_ != nullptr) next_ += rounded(count);
    return part;
  }
  static std::size_t rounded(std::size_t count) {
    constexpr std::size_t kLine = 64;
    return (count + kLine - 1) / kLine * kLine;
  }

 private:
  T* next_;
};

}  // namespace holmes::model::cuda
