#pragma once

// `holmes bench`: what transports and collectives reach on this machine. Each rank is a process of
// its own with one thread; the parent only starts them and collects what rank 0 measured.

#include <cstdint>
#include <string>
#include <vector>

#include "console.hpp"
#include "holmes/base/credentials.hpp"
#include "holmes/base/result.hpp"

namespace holmes::launcher {

struct BenchCommand {
  std::string what;  ///< "p2p", "allreduce" or "reduce-scatter".
  std::uint32_t ranks = 2;
  std::uint64_t bytes = 64 << 20;
  std::string transport = "tcp";
  std::string algorithm = "auto";
  std::uint32_t bulk_sockets = 1;
  double seconds = 2;  ///< For each thing that is measured.
  bool busy_poll = false;
  bool tls = false;
  bool json = false;
  std::vector<Credentials> credentials = {};  ///< Of each rank, with `tls`: bench() makes them.
};

int bench(const BenchCommand& command, Console& console);

}  // namespace holmes::launcher
