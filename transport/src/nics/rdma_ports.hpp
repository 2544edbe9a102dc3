#pragma once

// The ports of RDMA devices, as sys/class/infiniband has them and libibverbs corrects it.

#include <string>
#include <vector>

#include "holmes/transport/nics.hpp"
#include "nics/interfaces.hpp"

namespace holmes::transport::nics {

struct RdmaPort {
  std::string device;
  std::uint8_t port = 1;
  bool only_port = true;
  NicLayer layer = NicLayer::kInfiniBand;
  std::string state;  ///< "ACTIVE", "DOWN", "INIT".
  double gbit_s = 0;
  std::uint32_t mtu_bytes = 0;
  std::uint32_t lid = 0;
  std::vector<Gid> gids;  ///< Entries that are in use.
  std::string path;       ///< Of the PCI device.
  std::string unusable;   ///< Not empty: RDMA is not possible here, and why.
};

std::vector<RdmaPort> read_rdma_ports(const MachineTree& tree, const MachineFacts& facts);

/// The entry of a port's table that connections use: for RoCE version 2 before 1, IPv4 before
/// IPv6, routable addresses of this network namespace only.
std::optional<Gid> choose_gid(const RdmaPort& port, const Interfaces& interfaces);

}  // namespace holmes::transport::nics
