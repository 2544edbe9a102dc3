#include "config/choose_hosts.hpp"

#include <algorithm>

#include "holmes/base/suggest.hpp"

namespace holmes::actors {
namespace {

Error invalid(std::string what) {
  return Error(ErrorCode::kInvalidArgument, std::move(what));
}

Result<partition::Host> find_host(const std::string& name, const partition::Cluster& cluster) {
  std::vector<std::string_view> names;
  for (const auto& host : cluster.hosts) {
    if (host.name == name || (!host.address.empty() && host.address == name)) return host;
    names.push_back(host.name);
  }
  const std::string near = did_you_mean(name, names);
  if (!near.empty()) return invalid("the cluster file has no host named " + name + near);
  constexpr std::size_t kNamed = 8;
  std::string known;
  for (std::size_t i = 0; i < std::min(names.size(), kNamed); ++i)
    known += (i == 0 ? "" : ", ") + std::string(names[i]);
  return invalid("the cluster file has no host named " + name + "; its hosts are " + known +
                 (names.size() > kNamed ? ", ..." : "") + " (and no hostfile has that name)");
}

Status use_first_devices(std::uint32_t slots, partition::Host& host) {
  if (slots == 0) return {};
  if (slots > host.devices.size())
    return invalid("host " + host.name + " has slots=" + std::to_string(slots) +
                   ", but the cluster file gives it " + std::to_string(host.devices.size()) +
                   (host.devices.size() == 1 ? " device" : " devices"));
  host.devices.resize(slots);
  for (auto& nic : host.nics) {
    if (nic.near.empty()) continue;
    std::erase_if(nic.near, [slots](std::uint32_t device) { return device >= slots; });
    // Near none of those that are left: it serves them all alike.
  }
  return {};
}

}  // namespace

Status choose_hosts(const std::vector<HostChoice>& choices, partition::Cluster& cluster) {
  std::vector<partition::Host> chosen;
  for (const auto& choice : choices) {
    HOLMES_TRY_ASSIGN(auto host, find_host(choice.name, cluster));
    const bool twice = std::any_of(chosen.begin(), chosen.end(),
                                   [&](const auto& other) { return other.name == host.name; });
    if (twice) return invalid("host " + host.name + " is named twice");
    HOLMES_TRY(use_first_devices(choice.slots, host));
    chosen.push_back(std::move(host));
  }
  cluster.hosts = std::move(chosen);
  return {};
}

}  // namespace holmes::actors
