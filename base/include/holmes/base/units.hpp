#pragma once

// Units that appear in names and configuration. Rates are bits per second as networks state them.

#include <chrono>
#include <cstdint>

namespace holmes {

using Duration = std::chrono::nanoseconds;

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;
constexpr std::uint64_t kGiB = 1024 * kMiB;

constexpr double seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}
constexpr Duration from_seconds(double s) {
  return Duration(static_cast<Duration::rep>(s * 1e9));
}
/// Time that `bytes` take at `gbit_s` (1e9 bits per second), without latency.
constexpr Duration transfer_time(std::uint64_t bytes, double gbit_s) {
  return from_seconds(static_cast<double>(bytes) * 8.0 / (gbit_s * 1e9));
}

}  // namespace holmes
