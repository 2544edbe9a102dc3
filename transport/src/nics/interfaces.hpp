#pragma once

// The network interfaces of a machine, as sys/class/net has them, and what each is.

#include <string>
#include <vector>

#include "holmes/transport/nics.hpp"
#include "nics/tree.hpp"

namespace holmes::transport::nics {

enum class InterfaceKind : std::uint8_t {
  kPhysical,  ///< Has a device below it; virtual functions too.
  kBond,
  kBridge,
  kVlan,
  kLoopback,
  kVirtual,  ///< veth, tun, macvlan, ifb, dummy and the like.
};

struct Interface {
  std::string name;
  InterfaceKind kind = InterfaceKind::kVirtual;
  bool infiniband = false;  ///< IP over InfiniBand.
  bool carrier = false;
  double gbit_s = 0;
  std::uint32_t mtu_bytes = 0;
  long long device_port = 0;       ///< Which port of its device, from 0.
  std::string device;              ///< Path of the PCI or other device; empty: none.
  std::string master;              ///< Bond or bridge that it belongs to.
  std::vector<std::string> lower;  ///< What a bond, bridge or VLAN lies on.
  bool default_route = false;
  std::vector<InterfaceAddress> addresses;  ///< That other hosts can reach.
  bool link_local = false;                  ///< Has an address, but none of these.
};

class Interfaces {
 public:
  Interfaces(const MachineTree& tree, const std::vector<InterfaceAddress>& addresses);

  const std::vector<Interface>& all() const { return all_; }
  const Interface* find(const std::string& name) const;
  /// The first physical interface that this one lies on, or itself; null: there is none.
  const Interface* physical_below(const Interface& interface, int depth = 0) const;
  bool has_physical() const;
  /// Why it is of no use; empty: it is. `by_choice`: it would work.
  std::string left_out(const Interface& interface, bool& by_choice) const;

 private:
  std::vector<Interface> all_;
};

}  // namespace holmes::transport::nics
