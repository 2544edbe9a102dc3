#include "keepers.hpp"

#include <algorithm>
#include <optional>

#include "routes.hpp"

namespace holmes::actors {

namespace {

/// Chooses keepers one after the other, so that those of other stages share the burden.
class Choice {
 public:
  Choice(const partition::Plan& plan, const partition::Cluster& cluster)
      : plan_(plan), cluster_(cluster) {}

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
    return a != b && fastest_nics(cluster_, a, b).has_value();
  }

  std::size_t burden(DeviceId device) const {
    const auto at = kept_.find(device);
    return at == kept_.end() ? 0 : at->second;
  }

  const partition::Plan& plan_;
  const partition::Cluster& cluster_;
  std::map<DeviceId, std::size_t> kept_;
};

}  // namespace

Keepers keepers_of(const partition::Plan& plan, const partition::Cluster& cluster) {
  return Choice(plan, cluster).all();
}

Keepers keepers_of(const partition::Plan& plan, const JobConfig& job) {
  return job.resilience.on_loss == OnLoss::kContinue ? keepers_of(plan, job.cluster) : Keepers{};
}

}  // namespace holmes::actors
