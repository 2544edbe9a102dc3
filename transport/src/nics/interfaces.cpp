#include "nics/interfaces.hpp"

#include <algorithm>

#include "nics/address.hpp"

namespace holmes::transport::nics {

namespace {

// Types of hardware as linux/if_arp.h numbers them.
constexpr long long kHardwareLoopback = 772;
constexpr long long kHardwareInfiniBand = 32;
constexpr int kDepthMax = 4;

InterfaceKind kind_of(const MachineTree& tree, const std::string& folder) {
  if (tree.number(folder + "/type") == kHardwareLoopback) return InterfaceKind::kLoopback;
  if (tree.exists(folder + "/bonding")) return InterfaceKind::kBond;
  if (tree.exists(folder + "/bridge")) return InterfaceKind::kBridge;
  const auto event = tree.text(folder + "/uevent").value_or("");
  if (event.find("DEVTYPE=vlan") != std::string::npos) return InterfaceKind::kVlan;
  return tree.exists(folder + "/device") ? InterfaceKind::kPhysical : InterfaceKind::kVirtual;
}

Interface read(const MachineTree& tree, const std::string& name) {
  const std::string folder = "sys/class/net/" + name;
  Interface interface;
  interface.name = name;
  interface.kind = kind_of(tree, folder);
  interface.infiniband = tree.number(folder + "/type") == kHardwareInfiniBand;
  interface.carrier = tree.number(folder + "/carrier") == 1;
  interface.gbit_s = static_cast<double>(std::max(0LL, tree.number(folder + "/speed").value_or(0)));
  interface.gbit_s /= 1000;
  interface.mtu_bytes = static_cast<std::uint32_t>(tree.number(folder + "/mtu").value_or(0));
  interface.device_port = tree.number(folder + "/dev_port").value_or(0);
  interface.device = tree.real(folder + "/device");
  interface.master = tree.target_name(folder + "/master");
  for (const auto& entry : tree.names(folder))
    if (entry.starts_with("lower_")) interface.lower.push_back(entry.substr(6));
  return interface;
}

/// Interfaces through which packets for everywhere go.
std::vector<std::string> default_routes(const MachineTree& tree) {
  std::vector<std::string> found;
  for (const auto& line : lines_of(tree.text("proc/net/route").value_or(""))) {
    const auto words = words_of(line);
    if (words.size() > 7 && words[1] == "00000000" && words[7] == "00000000")
      found.push_back(words[0]);
  }
  return found;
}

}  // namespace

Interfaces::Interfaces(const MachineTree& tree, const std::vector<InterfaceAddress>& addresses) {
  for (const auto& name : tree.names("sys/class/net"))
    if (tree.exists("sys/class/net/" + name + "/type")) all_.push_back(read(tree, name));
  const auto routes = default_routes(tree);
  for (auto& interface : all_) {
    interface.default_route =
        std::find(routes.begin(), routes.end(), interface.name) != routes.end();
    for (const auto& each : addresses) {
      if (each.interface != interface.name) continue;
      const auto parsed = IpAddress::parse(each.address);
      if (parsed && parsed->is_routable())
        interface.addresses.push_back(each);
      else
        interface.link_local = true;
    }
  }
}

const Interface* Interfaces::find(const std::string& name) const {
  const auto found = std::find_if(all_.begin(), all_.end(),
                                  [&](const Interface& each) { return each.name == name; });
  return found == all_.end() ? nullptr : &*found;
}

const Interface* Interfaces::physical_below(const Interface& interface, int depth) const {
  if (interface.kind == InterfaceKind::kPhysical) return &interface;
  for (const auto& name : interface.lower) {
    const auto* lower = find(name);
    if (lower == nullptr || depth == kDepthMax) continue;
    if (const auto* physical = physical_below(*lower, depth + 1)) return physical;
  }
  return nullptr;
}

bool Interfaces::has_physical() const {
  return std::any_of(all_.begin(), all_.end(),
                     [](const Interface& each) { return each.kind == InterfaceKind::kPhysical; });
}

std::string Interfaces::left_out(const Interface& interface, bool& by_choice) const {
  by_choice = false;
  if (!interface.master.empty()) {
    const auto* master = find(interface.master);
    const bool bond = master != nullptr && master->kind == InterfaceKind::kBond;
    return (bond ? "member of bond " : "port of bridge ") + interface.master;
  }
  if (interface.kind != InterfaceKind::kLoopback && !interface.carrier) return "no carrier";
  if (interface.addresses.empty() && interface.kind != InterfaceKind::kLoopback)
    return interface.link_local ? "only a link-local address" : "no address";
  const bool loopback = interface.kind == InterfaceKind::kLoopback;
  if (!loopback && physical_below(interface) != nullptr) return "";
  // A container's only way out is a virtual interface.
  if (!loopback && (interface.default_route || !has_physical())) return "";
  by_choice = true;
  if (loopback) return "loopback";
  if (interface.kind == InterfaceKind::kBridge)
    return "bridge without a physical port (containers or guests of this host)";
  return "virtual interface (containers or guests of this host)";
}

}  // namespace holmes::transport::nics
