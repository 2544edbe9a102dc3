#include "text.hpp"

#include <array>
#include <cstdio>

namespace holmes::partition {

std::string_view to_string(NicKind kind) {
  switch (kind) {
    case NicKind::kInfiniBand:
      return "infiniband";
    case NicKind::kRoce:
      return "roce";
    case NicKind::kEthernet:
      return "ethernet";
    case NicKind::kLoopback:
      return "loopback";
  }
  return "unknown";
}

std::string_view to_string(GidKind kind) {
  switch (kind) {
    case GidKind::kUnknown:
      return "unknown";
    case GidKind::kInfiniBand:
      return "infiniband";
    case GidKind::kRoceV1:
      return "roce-v1";
    case GidKind::kRoceV2:
      return "roce-v2";
  }
  return "unknown";
}

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

std::string counted(std::size_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string keeper(const Nic& nic) {
  return nic.kept_out_by.empty() ? "use = false in the cluster file" : nic.kept_out_by;
}

std::string device_name(const Cluster& cluster, DeviceId device) {
  return devices_name(cluster, device, 1);
}

std::string devices_name(const Cluster& cluster, DeviceId first, std::size_t count) {
  std::size_t position = first.index();
  std::size_t host = 0;
  while (position >= cluster.hosts[host].devices.size()) {
    position -= cluster.hosts[host++].devices.size();
  }
  const std::string& name = cluster.hosts[host].name;
  if (cluster.hosts[host].devices.size() == 1) return name;
  const std::string last = count > 1 ? "-" + std::to_string(position + count - 1) : "";
  return name + "/" + std::to_string(position) + last;
}

std::string nics_of(const Cluster& cluster, HostId id) {
  const Host& host = cluster.hosts[id.index()];
  if (host.nics.empty()) return host.name + " has no NIC";
  std::vector<std::string> names;
  for (const Nic& nic : host.nics) {
    std::string name = nic.name + " on " + cluster.fabrics[nic.fabric.index()].name;
    if (!nic.port_up) name += " (port down)";
    if (!nic.use) name += " (kept out by " + keeper(nic) + ")";
    if (!nic.subnet.empty()) name += " (subnet " + nic.subnet + ")";
    if (nic.gid != GidKind::kUnknown) name += " (GID " + std::string(to_string(nic.gid)) + ")";
    names.push_back(std::move(name));
  }
  return host.name + " has " + joined(names);
}

}  // namespace holmes::partition
