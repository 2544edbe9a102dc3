#pragma once

// Every bound of the system that is not a user's setting, in one place.

#include <cstddef>

#include "holmes/base/units.hpp"

namespace holmes::limits {

/// Largest control message (votes, plans, credits), encoded.
constexpr std::size_t kControlBytesMax = 4 * kMiB;
/// Largest Cap'n Proto header before a bulk chunk.
constexpr std::size_t kBulkHeaderBytesMax = 4 * kKiB;
/// Bulk payloads travel in chunks of at most this size, so that control and a change of generation
/// never wait long behind one.
constexpr std::size_t kChunkBytesMax = 256 * kKiB;
/// Largest bulk payload of one operation.
constexpr std::size_t kPayloadBytesMax = 4 * kGiB;
/// Bytes that may wait unsent inside a socket (TCP_NOTSENT_LOWAT).
constexpr std::size_t kSocketUnsentBytesMax = 128 * kKiB;
/// Operations that one connection accepts before it refuses more.
constexpr std::size_t kConnectionOperationsMax = 4096;
/// Hosts, devices and layers that a configuration may name.
constexpr std::size_t kHostsMax = 4096;
constexpr std::size_t kDevicesMax = 65536;
constexpr std::size_t kLayersMax = 4096;
/// Text of a configuration file.
constexpr std::size_t kConfigBytesMax = 1 * kMiB;

static_assert(kChunkBytesMax <= kPayloadBytesMax);
static_assert(kSocketUnsentBytesMax <= kChunkBytesMax);

}  // namespace holmes::limits
