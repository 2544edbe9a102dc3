#pragma once

// What a job may run on: hosts with devices and NICs, the fabrics that join the NICs, and the links
// that join fabrics or clusters. Clusters are names that hosts carry. A plain value; it knows
// nothing of the file it was read from. Who reaches whom over what is in reach.hpp.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holmes/base/ids.hpp"
#include "holmes/base/result.hpp"

namespace holmes::partition {

enum class NicKind : std::uint8_t { kInfiniBand, kRoce, kEthernet, kLoopback };
/// The name in files and messages: "infiniband", "roce", "ethernet", "loopback".
std::string_view to_string(NicKind kind);

/// Of the address by which RDMA finds a NIC; the two versions of RoCE do not understand each other.
enum class GidKind : std::uint8_t { kUnknown, kInfiniBand, kRoceV1, kRoceV2 };
/// "unknown", "infiniband", "roce-v1", "roce-v2".
std::string_view to_string(GidKind kind);

struct Fabric {
  std::string name = {};
  NicKind kind = NicKind::kEthernet;
  double gbit_s = 0;       ///< Of one NIC, goodput.
  double latency_us = 0;   ///< One way.
  double trunk_gbit_s = 0; /**< Each way, of what all transfers on this fabric between different
                                clusters share; 0: they share nothing. */
  bool trusted = false;    ///< Plain RDMA and NCCL traffic may run on it.
  friend bool operator==(const Fabric&, const Fabric&) = default;
};

/// Joins two fabrics of one kind (their NICs reach each other through it), or is what all transfers
/// between two clusters share, whatever fabric they take. A fabric may not have a cluster's name.
struct Link {
  std::string from = {};
  std::string to = {};
  double gbit_s = 0;      ///< Each way, of all that cross it.
  double latency_us = 0;  ///< One way, on top of the NICs'.
  friend bool operator==(const Link&, const Link&) = default;
};

struct Nic {
  std::string name = {};
  FabricId fabric = {};
  double gbit_s = 0;
  double latency_us = 0;
  std::string address = {};  ///< Empty: the host's.
  /// Devices of its host, by their position there, that are near it; empty: all alike.
  std::vector<std::uint32_t> near = {};
  bool port_up = true;
  bool use = true;          ///< False: the user keeps it out.
  std::string subnet = {};  ///< Empty: not known. InfiniBand's prefix, or an IP network.
  GidKind gid = GidKind::kUnknown;
  std::uint32_t mtu_bytes = 0;   ///< 0: not known.
  std::string kept_out_by = {};  ///< "NCCL_IB_DISABLE=1"; empty where the cluster file does it.
  friend bool operator==(const Nic&, const Nic&) = default;
};

struct Device {
  std::string kind = "cpu";
  std::uint32_t threads = 1;
  double tflops = 0.1;  ///< Measured speed; only ratios matter to the split.
  double memory_gib = 4;
  /// Measured speed of training where the device is, network included (the paper's S); 0: tflops.
  /// The paper's formula divides layers by it; cost models use tflops.
  double training_tflops = 0;
  /// Its operators end no earlier than the time that `tflops` gives them: kinds "paced...".
  bool is_paced() const;
  /// Anything but cpu and paced devices.
  bool is_gpu() const;
  double split_speed() const { return training_tflops > 0 ? training_tflops : tflops; }
  friend bool operator==(const Device&, const Device&) = default;
};

struct Host {
  std::string name = {};
  std::string cluster = {};
  std::string address = {};  ///< Empty: this machine.
  std::vector<Device> devices = {};
  std::vector<Nic> nics = {};
  friend bool operator==(const Host&, const Host&) = default;
};

/// Devices are numbered through all hosts in order: that number is the device's rank.
struct Cluster {
  std::vector<Fabric> fabrics = {};
  std::vector<Host> hosts = {};
  std::vector<Link> links = {};
  friend bool operator==(const Cluster&, const Cluster&) = default;

  std::size_t device_count() const;
  /// Linear in the hosts: tables of many devices are in reach.hpp.
  HostId host_of(DeviceId device) const;
  const Device& device(DeviceId device) const;
  /// First NIC of `host` on `fabric` that is used and whose port is up; without one, on a fabric
  /// linked to it.
  std::optional<NicId> nic_on(HostId host, FabricId fabric) const;
};

/// Names become file names and parts of messages: letters, digits, '.', '_' and '-', at most 64, no
/// '.' in front. The error quotes the name.
Status check_name(const std::string& name);
/// A NIC on a fabric of `kind` can have a GID of kind `gid`.
bool fits(GidKind gid, NicKind kind);

/// kInvalidArgument naming the entry: duplicate names, no hosts or devices, speeds that are not
/// positive and finite, NICs on unknown fabrics, links to nowhere, counts over limits.
Status validate(const Cluster& cluster);

}  // namespace holmes::partition
