// Goal: memory is shared without copies, written only while unique, and recycled.
#include "holmes/base/buffer.hpp"

#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace holmes {
namespace {

TEST(Buffer, IsAlignedSizedAndShared) {
  for (const std::size_t size : {0, 1, 63, 64, 65, 4096, 4097, 1 << 20}) {
    Buffer buffer = Buffer::allocate(size);
    EXPECT_EQ(buffer.size(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % Buffer::kAlignment, 0U);
    const Buffer copy = buffer;
    EXPECT_EQ(copy.data(), buffer.data());
    EXPECT_FALSE(buffer.unique());
  }
}

TEST(Buffer, WriteAccessComesBackWithTheLastOtherHandle) {
  Buffer buffer = Buffer::allocate(8 * sizeof(float));
  buffer.mutable_as<float>()[7] = 2.5F;
  {
    const Buffer copy = buffer;
    EXPECT_EQ(copy.as<float>()[7], 2.5F);
  }
  EXPECT_TRUE(buffer.unique());
  const Buffer moved = std::move(buffer);
  EXPECT_TRUE(moved.unique());
}

TEST(BufferDeathTest, WritingWhatIsSharedStops) {
  Buffer buffer = Buffer::allocate(64);
  const Buffer copy = buffer;
  EXPECT_DEATH(buffer.mutable_bytes(), "shared");
}

TEST(BufferView, KeepsItsPart) {
  Buffer buffer = Buffer::allocate(16);
  for (std::size_t i = 0; i < 16; ++i) buffer.mutable_bytes()[i] = std::byte(i);
  const BufferView part = BufferView(buffer, 4, 8).part(2, 3);
  EXPECT_EQ(part.size(), 3U);
  EXPECT_EQ(part.bytes()[0], std::byte{6});
  EXPECT_EQ(BufferView(buffer).size(), 16U);
  EXPECT_DEATH(BufferView(buffer, 10, 7), "beyond");
}

TEST(BufferPool, WhatIsReservedIsAcquiredWithoutAskingTheSystem) {
  BufferPool pool(1 << 20);
  BufferDemand demand;
  demand.add(5000, 3);
  demand.add(5001);  // of the same blocks
  demand.add(64, 2);
  demand.add(64, 0);
  BufferDemand more;
  more.add(64);
  demand.add(more);
  EXPECT_EQ(demand.bytes(), 4U * 8192 + 3 * 64);
  const Buffer before = *pool.acquire(5000);
  ASSERT_TRUE(pool.reserve(demand));
  const auto reserved = pool.stats();
  EXPECT_EQ(reserved.bytes_held, 8192 + demand.bytes());
  std::vector<Buffer> held;
  for (int i = 0; i < 4; ++i) held.push_back(*pool.acquire(4999));
  for (int i = 0; i < 3; ++i) held.push_back(*pool.acquire(60));
  EXPECT_EQ(pool.stats().allocation_count, reserved.allocation_count);
  held.clear();
  ASSERT_TRUE(pool.reserve(demand));  // it is all here
  EXPECT_EQ(pool.stats().allocation_count, reserved.allocation_count);
}

TEST(BufferPool, AReservationGivesBackFreeMemoryThatDoesNotFitBeforeItIsRefused) {
  BufferPool pool(100000);
  { const auto free = std::vector{*pool.acquire(40960), *pool.acquire(8192)}; }
  EXPECT_EQ(pool.stats().bytes_held, 49152U);
  const Buffer lent = *pool.acquire(4096);
  BufferDemand demand;
  demand.add(8192);
  demand.add(65536);
  ASSERT_TRUE(pool.reserve(demand));
  EXPECT_EQ(pool.stats().bytes_held, 4096U + 8192 + 65536);
  demand.add(65536);
  EXPECT_FALSE(pool.reserve(demand));
}

TEST(BufferPool, AReservationOverTheBoundTakesNothing) {
  BufferPool pool(100000);
  BufferDemand demand;
  demand.add(4096);
  demand.add(50000, 2);
  const auto reserved = pool.reserve(demand);
  ASSERT_FALSE(reserved);
  EXPECT_EQ(reserved.error().code(), ErrorCode::kOutOfResources);
  EXPECT_EQ(pool.stats().bytes_held, 0U);
}

TEST(BufferPool, RecyclesAndCounts) {
  BufferPool pool(1 << 20);
  const std::byte* first = nullptr;
  {
    const Buffer buffer = *pool.acquire(5000);
    first = buffer.data();
    EXPECT_EQ(pool.stats().buffers_lent, 1U);
  }
  const Buffer again = *pool.acquire(4097);
  EXPECT_EQ(again.data(), first);
  EXPECT_EQ(again.size(), 4097U);
  EXPECT_EQ(pool.stats().allocation_count, 1U);
  EXPECT_EQ(pool.stats().buffers_lent, 1U);
}

TEST(BufferPool, RefusesMoreThanItsBound) {
  BufferPool pool(8192);
  const Buffer held = *pool.acquire(8192);
  const auto refused = pool.acquire(1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfResources);
}

TEST(BufferPool, BuffersOutliveTheirPool) {
  Buffer survivor;
  {
    BufferPool pool(1 << 20);
    survivor = *pool.acquire(100);
  }
  survivor.mutable_bytes()[99] = std::byte{1};
}

TEST(BufferPool, MayBeUsedFromManyThreads) {
  BufferPool pool(64 << 20);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&pool, t] {
      for (std::size_t i = 0; i < 2000; ++i) {
        Buffer buffer = *pool.acquire(64 + (i * 97 + static_cast<std::size_t>(t)) % 9000);
        buffer.mutable_bytes()[0] = std::byte{1};
        const Buffer copy = buffer;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(pool.stats().buffers_lent, 0U);
  EXPECT_EQ(pool.stats().bytes_lent, 0U);
}

}  // namespace
}  // namespace holmes
