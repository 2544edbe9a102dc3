// Brings RDMA ports and interfaces together into NICs.
#include <algorithm>
#include <array>
#include <cstdio>
#include <set>

#include "nics/address.hpp"
#include "nics/gpus.hpp"
#include "nics/rdma_ports.hpp"

namespace holmes::transport {

namespace {

using namespace nics;

class Finder {
 public:
  Finder(const MachineFacts& facts, const NicOptions& options)
      : tree_(facts.root),
        options_(options),
        interfaces_(tree_, facts.addresses),
        ports_(read_rdma_ports(tree_, facts)),
        gpus_(read_gpus(tree_)) {}

  FoundNics run() {
    FoundNics found;
    found.host = tree_.text("proc/sys/kernel/hostname").value_or("");
    for (const auto& port : ports_) found.nics.push_back(rdma_nic(port));
    for (const auto& interface : interfaces_.all())
      if (!claimed_.contains(interface.name)) found.nics.push_back(ethernet_nic(interface));
    found.remarks = remarks(found);
    return found;
  }

 private:
  FoundNic rdma_nic(const RdmaPort& port) {
    FoundNic nic;
    nic.layer = port.layer;
    nic.device = port.device;
    nic.port = port.port;
    nic.name = port.device + (port.only_port ? "" : "-p" + std::to_string(port.port));
    nic.gid = gid_of(port);
    if (const auto* interface = interface_of(port, nic.gid)) add_interface(nic, *interface);
    nic.gbit_s = port.gbit_s;
    nic.mtu_bytes = port.mtu_bytes;
    nic.lid = port.lid;
    add_place(nic, port.path);
    if (port.layer == NicLayer::kInfiniBand && nic.gid) nic.subnet = prefix_of(nic.gid->address);
    const auto why = why_no_rdma(port, nic);
    if (!why.empty()) return without_rdma(nic, why);
    if (port.layer == NicLayer::kRoce && nic.gid->type == GidType::kRoceV1)
      nic.remark = "RoCE version 1 only: reaches version 1 in its own network and nothing else";
    return nic;
  }

  std::optional<Gid> gid_of(const RdmaPort& port) const {
    if (!options_.gid_index) return choose_gid(port, interfaces_);
    const auto chosen = std::find_if(port.gids.begin(), port.gids.end(), [&](const Gid& gid) {
      return gid.index == *options_.gid_index;
    });
    return chosen == port.gids.end() ? std::nullopt : std::optional(*chosen);
  }

  std::string why_no_rdma(const RdmaPort& port, const FoundNic& nic) const {
    if (!port.unusable.empty()) return port.unusable;
    if (port.state == "INIT") return "RDMA port INIT: no subnet manager has configured it";
    if (port.state != "ACTIVE") return "RDMA port " + port.state;
    if (!nic.gid && options_.gid_index)
      return "NCCL_IB_GID_INDEX=" + std::to_string(*options_.gid_index) + ": no such address";
    if (!nic.gid)
      return port.layer == NicLayer::kRoce ? "no routable RoCE address" : "no InfiniBand address";
    if (port.layer == NicLayer::kInfiniBand && port.lid == 0)
      return "no LID: no subnet manager has given it one";
    return "";
  }

  /// The interface of the same physical port.
  const Interface* interface_of(const RdmaPort& port, const std::optional<Gid>& gid) const {
    if (gid)
      if (const auto* named = interfaces_.find(gid->interface)) return named;
    for (const auto& any : port.gids)
      if (const auto* named = interfaces_.find(any.interface)) return named;
    for (const auto& interface : interfaces_.all())
      if (!port.path.empty() && interface.device == port.path &&
          interface.infiniband == (port.layer == NicLayer::kInfiniBand) &&
          !tree_.exists("sys/class/net/" + interface.name + "/parent") &&
          (port.only_port || interface.device_port + 1 == port.port))
        return &interface;
    return nullptr;
  }

  void add_interface(FoundNic& nic, const Interface& interface) {
    claimed_.insert(interface.name);
    nic.interface = interface.name;
    nic.members = interface.lower;
    nic.interface_mtu_bytes = interface.mtu_bytes;
    bool by_choice = false;
    if (!interfaces_.left_out(interface, by_choice).empty() && !by_choice) return;
    nic.addresses = interface.addresses;
    if (!nic.addresses.empty()) nic.subnet = network_of(nic.addresses.front());
  }

  FoundNic ethernet_nic(const Interface& interface) {
    FoundNic nic;
    nic.name = interface.name;
    add_interface(nic, interface);
    nic.left_out = interfaces_.left_out(interface, nic.by_choice);
    nic.mtu_bytes = interface.mtu_bytes;
    nic.gbit_s = interface.gbit_s;
    const auto* physical = interfaces_.physical_below(interface);
    if (physical != nullptr) add_place(nic, physical->device);
    if (interface.kind == InterfaceKind::kVlan && nic.left_out.empty())
      nic.remark = "shares the port of " + joined(interface.lower);
    return nic;
  }

  void add_place(FoundNic& nic, const std::string& path) const {
    if (path.empty()) return;
    // virtio and the like lie one folder below the PCI device that knows.
    const auto file = std::filesystem::path(path);
    const MachineTree place(file);
    const auto node = place.number("numa_node");
    nic.numa_node =
        static_cast<std::int32_t>(node ? *node : place.number("../numa_node").value_or(-1));
    for (const auto& gpu : gpus_)
      nic.gpus.push_back({gpu.pci_address, distance(gpu, path, nic.numa_node)});
  }

  std::vector<std::string> remarks(const FoundNics& found) const {
    std::vector<std::string> remarks;
    for (const auto& line : lines_of(tree_.text("etc/hosts").value_or(""))) {
      const auto words = words_of(line.substr(0, line.find('#')));
      if (words.size() < 2 || found.host.empty()) continue;
      const auto address = IpAddress::parse(words[0]);
      if (address && address->is_loopback() &&
          std::find(words.begin() + 1, words.end(), found.host) != words.end())
        remarks.push_back("/etc/hosts: " + found.host + " is " + words[0] +
                          " here, which other hosts cannot reach: Holmes uses the NICs' own "
                          "addresses instead of the host's name");
    }
    const bool none = std::all_of(found.nics.begin(), found.nics.end(),
                                  [](const FoundNic& nic) { return !nic.left_out.empty(); });
    if (none) remarks.emplace_back("no NIC can be used: see --all for the reasons");
    return remarks;
  }

  static std::string network_of(const InterfaceAddress& each) {
    return IpAddress::parse(each.address)->network(each.prefix_bits);
  }
  /// The first half, as subnet managers write it.
  static std::string prefix_of(const std::string& gid) {
    const auto address = IpAddress::parse(gid).value_or(IpAddress{});
    std::array<char, 20> text{};
    const auto& b = address.bytes;
    std::snprintf(text.data(), text.size(), "%02x%02x:%02x%02x:%02x%02x:%02x%02x", b[0], b[1], b[2],
                  b[3], b[4], b[5], b[6], b[7]);
    return text.data();
  }
  static std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
  }

  const MachineTree tree_;
  const NicOptions options_;
  const Interfaces interfaces_;
  const std::vector<RdmaPort> ports_;
  const std::vector<Gpu> gpus_;
  std::set<std::string> claimed_;  // interfaces that are part of an RDMA port's NIC
};

}  // namespace

std::string_view to_string(NicLayer layer) {
  switch (layer) {
    case NicLayer::kInfiniBand:
      return "infiniband";
    case NicLayer::kRoce:
      return "roce";
    case NicLayer::kEthernet:
      return "ethernet";
  }
  return "unknown layer";
}

std::string_view to_string(GidType type) {
  switch (type) {
    case GidType::kInfiniBand:
      return "infiniband";
    case GidType::kRoceV1:
      return "roce-v1";
    case GidType::kRoceV2:
      return "roce-v2";
  }
  return "unknown type";
}

std::string_view to_string(GpuDistance distance) {
  switch (distance) {
    case GpuDistance::kSwitch:
      return "PIX";
    case GpuDistance::kSwitches:
      return "PXB";
    case GpuDistance::kHostBridge:
      return "PHB";
    case GpuDistance::kNumaNode:
      return "NODE";
    case GpuDistance::kSystem:
      return "SYS";
  }
  return "unknown distance";
}

Result<FoundNics> find_nics(const MachineFacts& facts, const NicOptions& options) {
  if (!nics::MachineTree(facts.root).exists("sys/class/net"))
    return Error(ErrorCode::kNotFound, facts.root.string() +
                                           ": no sys/class/net below it: on this machine sysfs is "
                                           "not mounted, or the folder is no recorded machine");
  return Finder(facts, options).run();
}

FoundNic without_rdma(const FoundNic& nic, const std::string& why) {
  if (nic.layer == NicLayer::kEthernet) return nic;
  FoundNic plain = nic;
  plain.gid.reset();
  plain.lid = 0;
  if (nic.addresses.empty()) {
    plain.left_out = why + (nic.interface.empty()
                                ? ", and it has no interface"
                                : ", and its interface " + nic.interface + " is of no use alone");
    return plain;
  }
  plain.layer = NicLayer::kEthernet;
  plain.name = nic.interface;
  plain.remark = "RDMA of " + nic.device + " is not used: " + why;
  plain.mtu_bytes = nic.interface_mtu_bytes;
  const auto& first = nic.addresses.front();
  plain.subnet = nics::IpAddress::parse(first.address)->network(first.prefix_bits);
  return plain;
}

}  // namespace holmes::transport
