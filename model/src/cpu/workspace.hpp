#pragma once

// Scratch memory that all layers of an engine share, since one layer runs at a time. Layers reserve
// their need when they are made; nothing is allocated after that.

#include <algorithm>
#include <span>

#include "holmes/base/buffer.hpp"

namespace holmes::model::cpu {

class Workspace {
 public:
  void reserve(std::size_t floats) {
    if (floats > count_) {
      buffer_ = Buffer::allocate(floats * sizeof(float));
      count_ = floats;
    }
  }
  std::span<float> floats() { return {buffer_.mutable_as<float>().data(), count_}; }

 private:
  Buffer buffer_;
  std::size_t count_ = 0;
};

/// Hands out consecutive parts of some memory, each beginning at a cache line.
template <class T>
class Carver {
 public:
  explicit Carver(T* memory) : next_(memory) {}
  T* take(std::size_t count) {
    T* part = next_;
    next_ += rounded(count);
    return part;
  }
  static std::size_t rounded(std::size_t count) {
    constexpr std::size_t kLine = Buffer::kAlignment / sizeof(T);
    return (count + kLine - 1) / kLine * kLine;
  }

 private:
  T* next_;
};

}  // namespace holmes::model::cpu
