#include "holmes/partition/cluster.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "holmes/base/assert.hpp"
#include "holmes/base/limits.hpp"
#include "network.hpp"
#include "text.hpp"

namespace holmes::partition {
namespace {

constexpr std::size_t kFabricsMax = 1024;
constexpr std::size_t kNicsPerHostMax = 64;
constexpr std::size_t kNameCharactersMax = 64;
constexpr double kGbitMax = 1e5;
constexpr double kLatencyUsMax = 1e7;
constexpr double kTflopsMax = 1e6;
constexpr double kMemoryGibMax = 1e6;
constexpr std::uint32_t kThreadsMax = 4096;
constexpr std::uint32_t kMtuBytesMax = 65536;
constexpr std::size_t kLinksMax = 4096;

Error invalid(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

/// `what` has a name, and a plain one.
Status check_named(const std::string& what, const std::string& name) {
  if (name.empty()) return invalid(what + " has no name");
  const Status status = check_name(name);
  return status ? status : invalid(what + " " + status.error().message());
}

Status check_positive(const std::string& what, const char* key, double value, double max) {
  if (std::isfinite(value) && value > 0 && value <= max) return {};
  return invalid(what + ": " + key + " = " + number(value) + " must be above 0 and at most " +
                 number(max));
}

Status check_latency(const std::string& what, double value) {
  if (std::isfinite(value) && value >= 0 && value <= kLatencyUsMax) return {};
  return invalid(what + ": latency_us = " + number(value) + " must lie between 0 and " +
                 number(kLatencyUsMax));
}

Status check_fabrics(const Cluster& cluster) {
  if (cluster.fabrics.size() > kFabricsMax) {
    return invalid(std::to_string(cluster.fabrics.size()) + " fabrics; at most " +
                   std::to_string(kFabricsMax) + " can be used");
  }
  std::set<std::string> names;
  for (const Fabric& fabric : cluster.fabrics) {
    HOLMES_TRY(check_named("fabric", fabric.name));
    const std::string what = "fabric " + fabric.name;
    if (!names.insert(fabric.name).second) {
      return invalid("two fabrics are named '" + fabric.name + "'; rename one");
    }
    if (fabric.kind > NicKind::kLoopback) return invalid(what + ": unknown kind");
    HOLMES_TRY(check_positive(what, "gbit_s", fabric.gbit_s, kGbitMax));
    HOLMES_TRY(check_latency(what, fabric.latency_us));
    if (fabric.trunk_gbit_s != 0) {
      HOLMES_TRY(check_positive(what, "trunk_gbit_s", fabric.trunk_gbit_s, kGbitMax));
    }
  }
  return {};
}

Status check_facts(const Cluster& cluster, const Host& host, const Nic& nic,
                   const std::string& what) {
  for (const std::uint32_t device : nic.near) {
    if (device < host.devices.size()) continue;
    return invalid(what + ": near names device " + std::to_string(device) + ", but the host has " +
                   counted(host.devices.size(), "device") + " (numbered from 0)");
  }
  const NicKind kind = cluster.fabrics[nic.fabric.index()].kind;
  if (!fits(nic.gid, kind)) {
    return invalid(what + ": a GID of kind " + std::string(to_string(nic.gid)) +
                   " is not possible on a fabric of kind " + std::string(to_string(kind)));
  }
  if (nic.mtu_bytes > kMtuBytesMax) {
    return invalid(what + ": mtu_bytes = " + std::to_string(nic.mtu_bytes) + " must be at most " +
                   std::to_string(kMtuBytesMax));
  }
  return {};
}

Status check_nics(const Cluster& cluster, const Host& host) {
  if (host.nics.size() > kNicsPerHostMax) {
    return invalid("host " + host.name + " has " + std::to_string(host.nics.size()) +
                   " NICs; at most " + std::to_string(kNicsPerHostMax) + " can be used");
  }
  std::set<std::string> names;
  for (const Nic& nic : host.nics) {
    HOLMES_TRY(check_named("NIC of host " + host.name, nic.name));
    const std::string what = "host " + host.name + ", NIC " + nic.name;
    if (!names.insert(nic.name).second) {
      return invalid("host " + host.name + ": two NICs are named '" + nic.name + "'; rename one");
    }
    if (nic.fabric.index() >= cluster.fabrics.size()) {
      return invalid(what + ": fabric " + std::to_string(nic.fabric.value()) + " does not exist");
    }
    HOLMES_TRY(check_positive(what, "gbit_s", nic.gbit_s, kGbitMax));
    HOLMES_TRY(check_latency(what, nic.latency_us));
    HOLMES_TRY(check_facts(cluster, host, nic, what));
  }
  return {};
}

Status check_devices(const Host& host) {
  if (host.devices.empty()) {
    return invalid("host " + host.name + " has no device; give it at least one [[host.device]]");
  }
  for (const Device& device : host.devices) {
    HOLMES_TRY(check_named("device kind of host " + host.name, device.kind));
    const std::string what = "host " + host.name + ", device " + device.kind;
    if (device.threads == 0 || device.threads > kThreadsMax) {
      return invalid(what + ": threads = " + std::to_string(device.threads) +
                     " must lie between 1 and " + std::to_string(kThreadsMax));
    }
    HOLMES_TRY(check_positive(what, "tflops", device.tflops, kTflopsMax));
    if (device.training_tflops != 0) {
      HOLMES_TRY(check_positive(what, "training_tflops", device.training_tflops, kTflopsMax));
    }
    HOLMES_TRY(check_positive(what, "memory_gib", device.memory_gib, kMemoryGibMax));
  }
  return {};
}

/// Ends of links: names of fabrics, or of clusters that hosts carry.
class LinkEnds {
 public:
  explicit LinkEnds(const Cluster& cluster) {
    for (const Fabric& fabric : cluster.fabrics) fabrics_.emplace(fabric.name, fabric.kind);
    for (const Host& host : cluster.hosts) clusters_.insert(host.cluster);
    clusters_.erase("");
  }

  Status check(const Link& link) const {
    const std::string what = "link from " + link.from + " to " + link.to;
    if (link.from == link.to) return invalid(what + ": a link has two different ends");
    for (const std::string& end : {link.from, link.to}) {
      const bool is_fabric = fabrics_.contains(end);
      if (is_fabric && clusters_.contains(end)) {
        return invalid(what + ": '" + end + "' is a fabric and a cluster; rename one");
      }
      if (!is_fabric && !clusters_.contains(end)) {
        return invalid(what + ": '" + end + "' is neither a fabric nor the cluster of a host");
      }
    }
    const auto from = fabrics_.find(link.from);
    const auto to = fabrics_.find(link.to);
    if ((from == fabrics_.end()) != (to == fabrics_.end())) {
      return invalid(what + ": one end is a fabric, the other a cluster; name two of a kind");
    }
    if (from != fabrics_.end() &&
        (from->second != to->second || from->second == NicKind::kLoopback)) {
      return invalid(what + ": fabrics of kind " + std::string(to_string(from->second)) + " and " +
                     std::string(to_string(to->second)) + " cannot be joined");
    }
    HOLMES_TRY(check_positive(what, "gbit_s", link.gbit_s, kGbitMax));
    return check_latency(what, link.latency_us);
  }

 private:
  std::map<std::string, NicKind> fabrics_;
  std::set<std::string> clusters_;
};

Status check_links(const Cluster& cluster) {
  if (cluster.links.size() > kLinksMax) {
    return invalid(std::to_string(cluster.links.size()) + " links; at most " +
                   std::to_string(kLinksMax) + " can be used");
  }
  if (cluster.links.empty()) return {};
  const LinkEnds ends(cluster);
  std::set<std::pair<std::string, std::string>> seen;
  for (const Link& link : cluster.links) {
    HOLMES_TRY(ends.check(link));
    if (!seen.insert(std::minmax(link.from, link.to)).second) {
      return invalid("two links join " + link.from + " and " + link.to + "; make them one");
    }
  }
  return {};
}

}  // namespace

Status check_name(const std::string& name) {
  if (name.size() > kNameCharactersMax) {
    return invalid("'" + name.substr(0, kNameCharactersMax) + "...': the name has over " +
                   std::to_string(kNameCharactersMax) + " characters");
  }
  const bool plain = name.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789._-") == std::string::npos;
  if (plain && !name.empty() && name.front() != '.') return {};
  return invalid("'" + name + "': use letters, digits, '.', '_' and '-' only, and no '.' in front");
}

bool fits(GidKind gid, NicKind kind) {
  return gid == GidKind::kUnknown ||
         (gid == GidKind::kInfiniBand && kind == NicKind::kInfiniBand) ||
         (gid > GidKind::kInfiniBand && gid <= GidKind::kRoceV2 && kind == NicKind::kRoce);
}

bool Device::is_paced() const {
  return kind.rfind("paced", 0) == 0;
}

bool Device::is_gpu() const {
  return kind.rfind("cpu", 0) != 0 && !is_paced();
}

std::size_t Cluster::device_count() const {
  std::size_t count = 0;
  for (const Host& host : hosts) count += host.devices.size();
  return count;
}

HostId Cluster::host_of(DeviceId device) const {
  std::size_t rank = device.index();
  for (std::uint32_t host = 0; host < hosts.size(); ++host) {
    if (rank < hosts[host].devices.size()) return HostId(host);
    rank -= hosts[host].devices.size();
  }
  assertion_failed("device exists", __FILE__, __LINE__, "device out of range");
}

const Device& Cluster::device(DeviceId id) const {
  std::size_t rank = id.index();
  for (const Host& host : hosts) {
    if (rank < host.devices.size()) return host.devices[rank];
    rank -= host.devices.size();
  }
  assertion_failed("device exists", __FILE__, __LINE__, "device out of range");
}

std::optional<NicId> Cluster::nic_on(HostId host, FabricId fabric) const {
  HOLMES_ASSERT(host.index() < hosts.size(), "host out of range");
  const auto& nics = hosts[host.index()].nics;
  for (std::uint32_t nic = 0; nic < nics.size(); ++nic) {
    if (nics[nic].fabric == fabric && nics[nic].port_up && nics[nic].use) return NicId(nic);
  }
  if (links.empty()) return std::nullopt;
  const auto linked = rails(*this, host, fabric);
  return linked.empty() ? std::nullopt : std::optional(linked.front());
}

Status validate(const Cluster& cluster) {
  if (cluster.hosts.empty()) return invalid("the cluster has no hosts; add at least one [[host]]");
  if (cluster.hosts.size() > limits::kHostsMax) {
    return invalid(std::to_string(cluster.hosts.size()) + " hosts; at most " +
                   std::to_string(limits::kHostsMax) + " can be used");
  }
  HOLMES_TRY(check_fabrics(cluster));
  std::set<std::string> names;
  for (const Host& host : cluster.hosts) {
    HOLMES_TRY(check_named("host", host.name));
    if (!names.insert(host.name).second) {
      return invalid("two hosts are named '" + host.name + "'; rename one");
    }
    if (!host.cluster.empty()) {
      HOLMES_TRY(check_named("cluster of host " + host.name, host.cluster));
    }
    HOLMES_TRY(check_nics(cluster, host));
    HOLMES_TRY(check_devices(host));
  }
  if (cluster.device_count() > limits::kDevicesMax) {
    return invalid(std::to_string(cluster.device_count()) + " devices; at most " +
                   std::to_string(limits::kDevicesMax) + " can be used");
  }
  return check_links(cluster);
}

}  // namespace holmes::partition
