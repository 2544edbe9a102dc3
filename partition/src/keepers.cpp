#include "holmes/partition/keepers.hpp"

#include <optional>

namespace holmes::partition {

namespace {

bool share_a_fabric(const Cluster& cluster, HostId a, HostId b) {
  for (std::uint32_t fabric = 0; fabric < cluster.fabrics.size(); ++fabric)
    if (cluster.nic_on(a, FabricId(fabric)) && cluster.nic_on(b, FabricId(fabric))) return true;
  return false;
}

/// Chooses keepers one after the other, so that those of other stages share the burden.
class Choice {
 public:
  Choice(const Plan& plan, const Cluster& cluster) : plan_(plan), cluster_(cluster) {}

  Keepers all() {
    Keepers keepers;
    for (std::size_t stage = 0; stage < plan_.stages.size(); ++stage)
      for (std::size_t share = 0; share < plan_.stages[stage].shares.size(); ++share)
        if (const auto keeper = choose(stage, share)) {
          ++kept_[*keeper];
          keepers.emplace(plan_.stages[stage].shares[share].device, *keeper);
        }
    return keepers;
  }

 private:
  std::optional<DeviceId> choose(std::size_t stage, std::size_t share) const {
    const auto& own = plan_.stages[stage].shares;
    for (std::size_t next = 1; next < own.size(); ++next) {
      const DeviceId other = own[(share + next) % own.size()].device;
      if (fits(own[share].device, other)) return other;
    }
    for (std::size_t next = 1; next < plan_.stages.size(); ++next)
      if (const auto other =
              least_burdened(own[share].device, (stage + next) % plan_.stages.size()))
        return other;
    return std::nullopt;
  }

  std::optional<DeviceId> least_burdened(DeviceId owner, std::size_t stage) const {
    std::optional<DeviceId> best;
    for (const auto& share : plan_.stages[stage].shares)
      if (fits(owner, share.device) && (!best || burden(share.device) < burden(*best)))
        best = share.device;
    return best;
  }

  bool fits(DeviceId owner, DeviceId keeper) const {
    const HostId a = cluster_.host_of(owner);
    const HostId b = cluster_.host_of(keeper);
    return a != b && share_a_fabric(cluster_, a, b);
  }

  std::size_t burden(DeviceId device) const {
    const auto at = kept_.find(device);
    return at == kept_.end() ? 0 : at->second;
  }

  const Plan& plan_;
  const Cluster& cluster_;
  std::map<DeviceId, std::size_t> kept_;
};

}  // namespace

Keepers keepers_of(const Plan& plan, const Cluster& cluster) {
  return Choice(plan, cluster).all();
}

}  // namespace holmes::partition
