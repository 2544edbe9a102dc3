#pragma once

// Logs peers that a listener turned away. Whoever reaches the port can cause these lines, so only a
// few of each minute are written.

#include <string>

#include "holmes/base/log.hpp"
#include "holmes/base/rate_limit.hpp"
#include "holmes/base/result.hpp"

namespace holmes::actors {

class RefusalLog {
 public:
  void write(const Logger& log, TimePoint now, const Error& error) {
    const auto held_back = limit_.admit(now);
    if (!held_back) return;
    std::string line = "refused a peer: " + error.message();
    if (*held_back != 0) line += " (and " + std::to_string(*held_back) + " more before it)";
    log.warning(line);
  }

 private:
  RateLimit limit_{20, std::chrono::minutes(1)};
};

}  // namespace holmes::actors
