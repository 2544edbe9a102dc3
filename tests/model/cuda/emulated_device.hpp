#pragma once

// A device for tests where there is no GPU: runs the GPU's kernels as loops (host_team.hpp), takes
// products in double, keeps its memory apart from the host's, and fails when told to.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "cuda/column_major.hpp"
#include "cuda/device.hpp"
#include "cuda/host_team.hpp"

namespace holmes::model::cuda {

/// What a test sees and sets; outlives the device.
struct Emulation {
  ThreadOrder order = ThreadOrder::kAscending;
  bool shares_memory = false;
  std::size_t bytes_total = std::size_t{1} << 30;
  std::size_t bytes_used = 0;
  std::size_t blocks = 0;
  std::size_t allocations = 0;
  std::size_t copies = 0;
  std::size_t calls = 0;                ///< Products and kernels.
  std::size_t calls_until_failure = 0;  ///< 0: none.
};

class EmulatedDevice final : public Device {
 public:
  explicit EmulatedDevice(Emulation& emulation) : emulation_(emulation) {}
  ~EmulatedDevice() override {
    for (const auto& [memory, bytes] : blocks_) std::free(memory);
  }

  void facts(DeviceFacts& out) override {
    std::strcpy(out.name, "emulated device 0");
    std::strcpy(out.architecture, "sm_00");
    out.memory_bytes = emulation_.bytes_total;
    out.shares_memory = emulation_.shares_memory;
  }
  void* allocate(MemoryKind kind, std::size_t bytes, Outcome& outcome) override {
    HOLMES_ASSERT(kind != MemoryKind::kShared || emulation_.shares_memory, "none is shared");
    const bool on_device = kind != MemoryKind::kPinned;
    if (on_device && bytes > emulation_.bytes_total - emulation_.bytes_used) {
      outcome.code = Outcome::Code::kOutOfMemory;
      return nullptr;
    }
    void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    std::memset(memory, 0xff, bytes);  // NaN: shows reads of what nobody wrote
    blocks_[memory] = on_device ? bytes : 0;
    emulation_.bytes_used += blocks_[memory];
    ++emulation_.blocks;
    ++emulation_.allocations;
    return memory;
  }
  void release(MemoryKind, void* memory) override {
    const auto block = blocks_.find(memory);
    HOLMES_ASSERT(block != blocks_.end(), "memory that the device did not give");
    emulation_.bytes_used -= block->second;
    --emulation_.blocks;
    blocks_.erase(block);
    std::free(memory);
  }
  FreeMemory free_memory() override {
    return {emulation_.bytes_total - emulation_.bytes_used, emulation_.bytes_total};
  }
  void copy(void* to, const void* from, std::size_t bytes, Outcome&) override {
    HOLMES_ASSERT(is_own(to) || is_own(from), "a copy that the device has no part in");
    ++emulation_.copies;
    std::memcpy(to, from, bytes);
  }
  void clear(void* memory, std::size_t bytes, Outcome&) override {
    HOLMES_ASSERT(is_own(memory), "memory that the device cannot reach");
    std::memset(memory, 0, bytes);
  }
  void multiply(const Product& product, Outcome& outcome) override {
    if (fails(outcome)) return;
    for (const void* each :
         {static_cast<const void*>(product.left.data), static_cast<const void*>(product.right.data),
          static_cast<const void*>(product.out)})
      HOLMES_ASSERT(is_own(each), "memory that the device cannot reach");
    const ColumnMajor turn = column_major(product);
    for (const auto* each : {&turn.first, &turn.second})
      HOLMES_ASSERT(each->stride >= each->rows, "columns that overlap");
    for (std::size_t column = 0; column < turn.columns; ++column)
      for (std::size_t row = 0; row < turn.rows; ++row) {
        double sum = 0;
        for (std::size_t i = 0; i < product.inner; ++i)
          sum += double{at(turn.first, row, i)} * at(turn.second, i, column);
        sum *= product.scale;
        const std::size_t place = column * product.out_stride + row;
        if (product.added != nullptr) sum += product.added[place];
        if (product.bias != nullptr) sum += product.bias[row];
        product.out[place] = static_cast<float>(sum);
      }
  }
  void launch(KernelId id, const void* kernel, Outcome& outcome) override {
    if (fails(outcome)) return;
    with_kernel(id, kernel, [&](const auto& each) { run_on_host(each, emulation_.order); });
  }
  void wait(Outcome&) override {}

 private:
  static float at(const ColumnMajor::Operand& operand, std::size_t row, std::size_t column) {
    if (operand.transposed) std::swap(row, column);
    HOLMES_ASSERT(row < operand.rows && column < operand.columns, "beyond an operand");
    return operand.data[column * operand.stride + row];
  }
  bool is_own(const void* memory) const {
    auto block = blocks_.upper_bound(const_cast<void*>(memory));
    if (block == blocks_.begin()) return false;
    --block;
    return static_cast<const std::byte*>(memory) <
           static_cast<const std::byte*>(block->first) + block->second;
  }
  bool fails(Outcome& outcome) {
    ++emulation_.calls;
    if (emulation_.calls_until_failure == 0 || --emulation_.calls_until_failure != 0) return false;
    outcome.code = Outcome::Code::kFailed;
    std::strcpy(outcome.text, "an emulated fault");
    return true;
  }

  Emulation& emulation_;
  std::map<void*, std::size_t> blocks_;
};

}  // namespace holmes::model::cuda
