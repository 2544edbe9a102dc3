#pragma once

// Which chunks of a stage's parameters each replica owns: contiguous runs, balanced by count, a
// function of three numbers so that all replicas agree without talking.

#include <cstdint>

namespace holmes::partition {

/// Chunks [first, last); empty when there are fewer chunks than replicas.
struct ChunkRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::uint64_t size() const { return last - first; }
  friend bool operator==(const ChunkRange&, const ChunkRange&) = default;
};

/// The run of replica `index`. Runs differ by at most one chunk and follow one another.
ChunkRange shard_range(std::uint64_t chunk_count, std::uint32_t replica_count, std::uint32_t index);

/// The replica that owns `chunk`: the inverse of shard_range().
std::uint32_t shard_owner(std::uint64_t chunk_count, std::uint32_t replica_count,
                          std::uint64_t chunk);

}  // namespace holmes::partition
