#pragma once

// What a job may run on: hosts with devices and NICs, and the fabrics that join the NICs. Clusters
// are names that hosts carry. A plain value; it knows nothing of the file it was read from.

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

struct Fabric {
  std::string name;
  NicKind kind = NicKind::kEthernet;
  double gbit_s = 0;      ///< Of one NIC, goodput.
  double latency_us = 0;  ///< One way.
  friend bool operator==(const Fabric&, const Fabric&) = default;
};

struct Nic {
  std::string name;
  FabricId fabric;
  double gbit_s = 0;
  double latency_us = 0;
  friend bool operator==(const Nic&, const Nic&) = default;
};

struct Device {
  std::string kind = "cpu";
  std::uint32_t threads = 1;
  double tflops = 0.1;  ///< Measured training speed; only ratios matter to the split.
  double memory_gib = 4;
  friend bool operator==(const Device&, const Device&) = default;
};

struct Host {
  std::string name;
  std::string cluster;
  std::string address;  ///< Empty: this machine.
  std::vector<Device> devices;
  std::vector<Nic> nics;
  friend bool operator==(const Host&, const Host&) = default;
};

/// Devices are numbered through all hosts in order: that number is the device's rank.
struct Cluster {
  std::vector<Fabric> fabrics;
  std::vector<Host> hosts;
  friend bool operator==(const Cluster&, const Cluster&) = default;

  std::size_t device_count() const;
  HostId host_of(DeviceId device) const;
  const Device& device(DeviceId device) const;
  /// First NIC of `host` on `fabric`.
  std::optional<NicId> nic_on(HostId host, FabricId fabric) const;
};

/// kInvalidArgument naming the entry: duplicate names, no hosts or devices, speeds that are not
/// positive and finite, NICs on unknown fabrics, counts over limits.
Status validate(const Cluster& cluster);

}  // namespace holmes::partition
