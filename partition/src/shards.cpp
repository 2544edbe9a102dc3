#include "holmes/partition/shards.hpp"

#include "holmes/base/assert.hpp"

namespace holmes::partition {

ChunkRange shard_range(std::uint64_t chunk_count, std::uint32_t replica_count,
                       std::uint32_t index) {
  HOLMES_ASSERT(index < replica_count, "replica out of range");
  const std::uint64_t each = chunk_count / replica_count;
  const std::uint64_t longer = chunk_count % replica_count;  // the first ones have one more
  const std::uint64_t first = each * index + (index < longer ? index : longer);
  return {first, first + each + (index < longer ? 1 : 0)};
}

std::uint32_t shard_owner(std::uint64_t chunk_count, std::uint32_t replica_count,
                          std::uint64_t chunk) {
  HOLMES_ASSERT(replica_count > 0 && chunk < chunk_count, "chunk out of range");
  const std::uint64_t each = chunk_count / replica_count;
  const std::uint64_t longer = chunk_count % replica_count;
  const std::uint64_t in_longer = longer * (each + 1);
  const std::uint64_t owner =
      chunk < in_longer ? chunk / (each + 1) : longer + (chunk - in_longer) / each;
  return static_cast<std::uint32_t>(owner);
}

}  // namespace holmes::partition
