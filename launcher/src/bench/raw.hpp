#pragma once

// What two processes reach over one plain TCP socket in both directions at once: the yardstick.

#include "bench/figures.hpp"
#include "holmes/base/result.hpp"

namespace holmes::launcher {

/// Both ends send and receive `bytes` at the same time, again and again, as the loop of a NIC would
/// (one thread, non-blocking, poll). `socket` is connected; `first` says who decides when to stop.
Result<Figures> raw_exchange(int socket, bool first, std::uint64_t bytes, double seconds);

}  // namespace holmes::launcher
