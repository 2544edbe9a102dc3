// Goal: shards are contiguous, balanced, cover all chunks once, and owner is the inverse.
// Method: all small cases, and one that would overflow 32 bits.
#include "holmes/partition/shards.hpp"

#include <gtest/gtest.h>

namespace holmes::partition {
namespace {

TEST(Shards, CoverAllChunksOnceInOrder) {
  for (std::uint64_t chunks = 0; chunks < 40; ++chunks) {
    for (std::uint32_t replicas = 1; replicas < 12; ++replicas) {
      std::uint64_t next = 0;
      for (std::uint32_t i = 0; i < replicas; ++i) {
        const ChunkRange range = shard_range(chunks, replicas, i);
        EXPECT_EQ(range.first, next);
        EXPECT_GE(range.size(), chunks / replicas);
        EXPECT_LE(range.size(), (chunks + replicas - 1) / replicas);
        for (auto c = range.first; c < range.last; ++c) {
          EXPECT_EQ(shard_owner(chunks, replicas, c), i);
        }
        next = range.last;
      }
      EXPECT_EQ(next, chunks);
    }
  }
}

TEST(Shards, KnownCases) {
  EXPECT_EQ(shard_range(10, 4, 0), (ChunkRange{0, 3}));
  EXPECT_EQ(shard_range(10, 4, 3), (ChunkRange{8, 10}));
  EXPECT_EQ(shard_range(2, 4, 3).size(), 0U);
  const std::uint64_t huge = std::uint64_t{1} << 62;
  EXPECT_EQ(shard_range(huge, 4, 3).last, huge);
}

TEST(ShardsDeathTest, UnknownReplica) {
  EXPECT_DEATH(std::ignore = shard_range(10, 4, 4), "out of range");
  EXPECT_DEATH(std::ignore = shard_owner(10, 4, 10), "out of range");
}

}  // namespace
}  // namespace holmes::partition
