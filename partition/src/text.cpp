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

std::string nics_of(const Cluster& cluster, HostId id) {
  const Host& host = cluster.hosts[id.index()];
  if (host.nics.empty()) return host.name + " has no NIC";
  std::vector<std::string> names;
  for (const Nic& nic : host.nics) {
    names.push_back(nic.name + " on " + cluster.fabrics[nic.fabric.index()].name);
  }
  return host.name + " has " + joined(names);
}

}  // namespace holmes::partition
