#pragma once

// Which NICs this host has: RDMA ports and network interfaces, seen as what they are physically. A
// port that is both an RDMA device and an interface is one NIC. It says what the machine says of
// itself; who really reaches whom, and how fast, only a connection shows.
//
// Everything is read below one folder, so that a recorded tree of another machine gives what that
// machine would. Threads: plain functions, on the caller's thread; they read small files.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "holmes/base/result.hpp"

namespace holmes::transport {

enum class NicLayer : std::uint8_t { kInfiniBand, kRoce, kEthernet };
/// "infiniband", "roce", "ethernet".
std::string_view to_string(NicLayer layer);

enum class GidType : std::uint8_t { kInfiniBand, kRoceV1, kRoceV2 };
/// "infiniband", "roce-v1", "roce-v2".
std::string_view to_string(GidType type);

struct InterfaceAddress {
  std::string interface;
  std::string address;  ///< As text: "10.1.2.3", "fd00::2".
  std::uint8_t prefix_bits = 0;
  friend bool operator==(const InterfaceAddress&, const InterfaceAddress&) = default;
};

/// One entry of a port's table of addresses.
struct Gid {
  std::uint32_t index = 0;
  std::string address;  ///< "fe80::1", or "10.1.2.3" where it stands for an IPv4 address.
  GidType type = GidType::kInfiniBand;
  std::string interface;  ///< Whose address it is, for RoCE; empty: not known.
  friend bool operator==(const Gid&, const Gid&) = default;
};

/// What libibverbs says of a port; it may see less than the files do, as in a container.
struct VerbsPort {
  std::string device;
  std::uint8_t port = 1;
  std::string error;  ///< Not empty: the device cannot be used, and why.
  bool active = false;
  std::uint32_t lid = 0;
  std::uint32_t mtu_bytes = 0;
  std::vector<Gid> gids;
  friend bool operator==(const VerbsPort&, const VerbsPort&) = default;
};

/// Facts of a machine that are in no file.
struct MachineFacts {
  std::filesystem::path root = "/";  ///< sys, proc and etc lie below it.
  std::vector<InterfaceAddress> addresses;
  std::vector<VerbsPort> verbs;
  std::string verbs_error;  ///< Not empty: there is no libibverbs to ask, and why.
};
/// Of the machine that this runs on. Loads libibverbs if it is there and the machine has RDMA.
Result<MachineFacts> machine_facts();
/// Of a recorded machine: `folder`/facts/addresses and facts/verbs have what is in no file there.
Result<MachineFacts> recorded_facts(const std::filesystem::path& folder);

/// How near a GPU is, as nvidia-smi's topology says it: one PCI switch, several, the host bridge,
/// the NUMA node, or none of these.
enum class GpuDistance : std::uint8_t { kSwitch, kSwitches, kHostBridge, kNumaNode, kSystem };
/// "PIX", "PXB", "PHB", "NODE", "SYS".
std::string_view to_string(GpuDistance distance);

struct GpuNear {
  std::string pci_address;  ///< "0000:41:00.0"; GPUs are listed in this order.
  GpuDistance distance = GpuDistance::kSystem;
  friend bool operator==(const GpuNear&, const GpuNear&) = default;
};

struct FoundNic {
  std::string
      name;  ///< The RDMA device's ("-pN" added where it has several ports), or `interface`.
  NicLayer layer = NicLayer::kEthernet;
  std::string left_out;    ///< Not empty: it is not used, and why.
  bool by_choice = false;  ///< Left out although it works: a user may want it all the same.
  std::string remark;      ///< What a user should know of it; empty mostly.
  std::string device;      ///< RDMA device; empty: none.
  std::uint8_t port = 0;
  std::string interface;                    ///< Empty: the port has none.
  std::vector<std::string> members;         ///< Interfaces below a bond, bridge or VLAN.
  std::vector<InterfaceAddress> addresses;  ///< Those that other hosts can reach.
  double gbit_s = 0;                        ///< As the port claims; 0: it does not say.
  std::uint32_t mtu_bytes = 0;              ///< Of RDMA messages, or of the interface; 0: unknown.
  std::uint32_t interface_mtu_bytes = 0;
  std::uint32_t lid = 0;        ///< InfiniBand.
  std::string subnet;           ///< InfiniBand's prefix, or the IP network.
  std::optional<Gid> gid;       ///< What RDMA connections use.
  std::int32_t numa_node = -1;  ///< -1: not known.
  std::vector<GpuNear> gpus;
};

struct FoundNics {
  std::string host;
  std::vector<FoundNic> nics;  ///< RDMA ports first, each kind by name; those left out too.
  std::vector<std::string> remarks;
};

/// NCCL's variable that chooses the entry of the GID table.
struct NicOptions {
  std::optional<std::uint32_t> gid_index;
};

/// kNotFound: `root` has no sys/class/net.
Result<FoundNics> find_nics(const MachineFacts& facts, const NicOptions& options);

/// The same NIC without RDMA: an Ethernet NIC of its interface, left out where it has no address.
FoundNic without_rdma(const FoundNic& nic, const std::string& why);

}  // namespace holmes::transport
