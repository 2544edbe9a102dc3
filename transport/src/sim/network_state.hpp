#pragma once

// What a SimNetwork shares with its contexts and pipes: NICs, paths between them, and who listens.

#include <set>

#include "holmes/transport/sim.hpp"
#include "link/link.hpp"

namespace holmes::transport::sim {

class SimPipe;

/// A place where a process listens.
struct SimAcceptor {
  std::size_t nic = 0;
  Identity self;
  std::shared_ptr<Executor> executor;
  AcceptHandler accepted;
  RefuseHandler refused;
};

struct Nic {
  std::string name;
  std::string host;
  std::size_t fabric = 0;
  double gbit_s = 0;
  Duration extra_latency{};
  bool cut = false;
  bool dead = false;
  TimePoint egress_free{};   // when the last bulk chunk has left
  TimePoint ingress_free{};  // when the last one has arrived
};

class NetworkState {
 public:
  struct Fabric {
    std::string name;
    double gbit_s = 0;
    Duration latency{};
    Duration jitter{};
  };

  NetworkState(SimLoop& loop_in, std::uint64_t seed) : loop(loop_in), random(seed) {}

  std::size_t nic_index(const std::string& name) const;
  std::optional<std::size_t> find_nic(const std::string& name) const;
  bool is_cut(std::size_t from, std::size_t to) const;
  /// Time on the way from one NIC to another, with jitter.
  Duration latency(std::size_t from, std::size_t to);
  void note(std::size_t from, std::size_t to, std::uint64_t what);
  /// Sends on what was held, on all paths that are open now.
  void release_held();

  SimLoop& loop;
  Random random;
  std::vector<Fabric> fabrics;
  std::vector<Nic> nics;
  std::set<std::pair<std::size_t, std::size_t>> cuts;
  std::map<std::string, std::shared_ptr<SimAcceptor>> acceptors;  // by address with port
  std::vector<std::shared_ptr<SimPipe>> pipes;                    // until they are finished
  std::uint32_t next_port = 1024;
};

std::unique_ptr<Context> make_sim_context(std::shared_ptr<NetworkState> network, std::size_t nic,
                                          Executor& executor);

}  // namespace holmes::transport::sim
