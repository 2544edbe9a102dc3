#include "nics/rdma_ports.hpp"

#include <algorithm>
#include <charconv>

#include "nics/address.hpp"

namespace holmes::transport::nics {

namespace {

/// Addresses in sysfs are eight groups of four digits.
std::optional<Gid> read_gid(const MachineTree& tree, const std::string& folder,
                            const std::string& index, NicLayer layer) {
  const auto number = parse_number(index);
  const auto address = IpAddress::parse(tree.text(folder + "/gids/" + index).value_or(""));
  if (!number || !address || address->is_zero()) return std::nullopt;
  Gid gid{static_cast<std::uint32_t>(*number), address->text(), GidType::kInfiniBand, ""};
  if (layer == NicLayer::kInfiniBand) return gid;
  const auto type = tree.text(folder + "/gid_attrs/types/" + index).value_or("");
  gid.type = type == "RoCE v2" ? GidType::kRoceV2 : GidType::kRoceV1;
  gid.interface = tree.text(folder + "/gid_attrs/ndevs/" + index).value_or("");
  return gid;
}

/// "200 Gb/sec (4X HDR)"
double rate_of(const std::string& text) {
  double rate = 0;
  std::from_chars(text.data(), text.data() + text.size(), rate);
  return rate;
}

RdmaPort read_port(const MachineTree& tree, const std::string& device, const std::string& number) {
  const std::string folder = "sys/class/infiniband/" + device + "/ports/" + number;
  RdmaPort port;
  port.device = device;
  port.port = static_cast<std::uint8_t>(parse_number(number).value_or(1));
  if (tree.text(folder + "/link_layer") == "Ethernet") port.layer = NicLayer::kRoce;
  const auto state = words_of(tree.text(folder + "/state").value_or(""));
  port.state = state.empty() ? "unknown" : state.back();
  port.gbit_s = rate_of(tree.text(folder + "/rate").value_or(""));
  port.lid = static_cast<std::uint32_t>(tree.number(folder + "/lid").value_or(0));
  for (const auto& index : tree.names(folder + "/gids"))
    if (auto gid = read_gid(tree, folder, index, port.layer)) port.gids.push_back(*gid);
  std::sort(port.gids.begin(), port.gids.end(),
            [](const Gid& a, const Gid& b) { return a.index < b.index; });
  port.path = tree.real("sys/class/infiniband/" + device + "/device");
  return port;
}

/// What libibverbs says is what counts: it is asked from where connections will be made.
void correct(RdmaPort& port, const MachineFacts& facts) {
  if (!facts.verbs_error.empty()) {
    port.unusable = facts.verbs_error;
    return;
  }
  const auto known = std::find_if(facts.verbs.begin(), facts.verbs.end(), [&](const auto& each) {
    return each.device == port.device && each.port == port.port;
  });
  if (known == facts.verbs.end()) {
    port.unusable = "libibverbs does not see it: has this container /dev/infiniband?";
    return;
  }
  port.unusable = known->error;
  if (!known->error.empty()) return;
  if (port.state == "ACTIVE" && !known->active) port.state = "DOWN";
  port.mtu_bytes = known->mtu_bytes;
  if (known->lid != 0) port.lid = known->lid;
  if (!known->gids.empty()) port.gids = known->gids;
}

/// Whether the entry is an address of this network namespace.
bool is_here(const Gid& gid, const IpAddress& address, const Interfaces& interfaces) {
  if (!gid.interface.empty()) return interfaces.find(gid.interface) != nullptr;
  for (const auto& interface : interfaces.all())
    for (const auto& each : interface.addresses)
      if (IpAddress::parse(each.address) == address) return true;
  return false;
}

/// The lower the better; nothing: not to be used.
std::optional<int> rank_of(const Gid& gid, const Interfaces& interfaces) {
  const auto address = IpAddress::parse(gid.address);
  if (!address || !address->is_routable() || !is_here(gid, *address, interfaces))
    return std::nullopt;
  return (gid.type == GidType::kRoceV2 ? 0 : 2) + (address->is_v4() ? 0 : 1);
}

}  // namespace

std::vector<RdmaPort> read_rdma_ports(const MachineTree& tree, const MachineFacts& facts) {
  std::vector<RdmaPort> ports;
  for (const auto& device : tree.names("sys/class/infiniband")) {
    const auto numbers = tree.names("sys/class/infiniband/" + device + "/ports");
    for (const auto& number : numbers) {
      ports.push_back(read_port(tree, device, number));
      ports.back().only_port = numbers.size() == 1;
      correct(ports.back(), facts);
    }
  }
  return ports;
}

std::optional<Gid> choose_gid(const RdmaPort& port, const Interfaces& interfaces) {
  if (port.layer == NicLayer::kInfiniBand)
    return port.gids.empty() ? std::nullopt : std::optional(port.gids.front());
  std::optional<Gid> best;
  std::optional<int> best_rank;
  for (const auto& gid : port.gids) {
    const auto rank = rank_of(gid, interfaces);
    if (!rank || (best_rank && *best_rank <= *rank)) continue;
    best = gid;
    best_rank = rank;
  }
  return best;
}

}  // namespace holmes::transport::nics
