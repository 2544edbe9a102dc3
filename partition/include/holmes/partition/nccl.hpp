#pragma once

// What concerns NCCL: the users' variables that override the choice of NICs, and the settings of
// each GPU group's own communicator, which come out of that choice and are never process-wide.
// Strings in, values out: nothing here reads the environment or calls NCCL.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holmes/partition/cluster.hpp"
#include "holmes/partition/plan.hpp"

namespace holmes::partition {

/// A list of names as NCCL_SOCKET_IFNAME and NCCL_IB_HCA have it: prefixes, separated by commas;
/// '=' before the list: whole names; '^' before all: everything but these. An entry "name:2" means
/// port 2 only.
class NameFilter {
 public:
  explicit NameFilter(std::string_view text);
  bool allows(std::string_view name, std::uint32_t port = 1) const;

 private:
  struct Entry {
    std::string name;
    std::optional<std::uint32_t> port;
  };
  bool exclude_ = false;
  bool exact_ = false;
  std::vector<Entry> entries_;
};

/// The variables' texts; nothing: not set.
struct NcclOverrides {
  std::optional<std::string> socket_ifname = {};  ///< Of Ethernet and loopback NICs, by name.
  std::optional<std::string> ib_hca = {};         ///< Of InfiniBand and RoCE NICs, by name.
  std::optional<std::string> ib_disable = {};     ///< Not 0: no InfiniBand and RoCE at all.
};

/// Sets Nic::use to false for what the overrides keep out. kInvalidArgument for a text that NCCL
/// would not understand.
Status apply(const NcclOverrides& overrides, Cluster& cluster);

/// Of one communicator.
struct NcclSettings {
  struct HostNics {
    HostId host;
    std::vector<NicId> nics;  ///< Those near the group's devices there, else all on the fabric.
  };
  std::string net_name;  ///< "IB" (RoCE too) or "Socket"; empty: within one host.
  std::vector<HostNics> nics;
};
/// Nothing where NCCL is not to be used: votes, devices that are no GPUs, hosts that only a link
/// between fabrics joins, fabrics that are not trusted.
std::optional<NcclSettings> nccl_settings(const Cluster& cluster, const Group& group);
/// "IB over a0: ib0, ib1; a1: ib0, ib1", for people; hosts beyond the fourth are counted.
std::string describe(const Cluster& cluster, const NcclSettings& settings);

}  // namespace holmes::partition
