// Placements that the search tries.

#include <algorithm>
#include <set>
#include <tuple>

#include "holmes/partition/reach.hpp"
#include "search/candidates.hpp"

namespace holmes::partition {
namespace {

/// Stage counts that are tried where not every placement is.
std::set<std::size_t> stage_counts(std::size_t units, std::size_t clusters, std::uint32_t blocks,
                                   const PlanOptions& options) {
  if (options.pipeline > 0) return {options.pipeline};
  constexpr std::size_t kManyUnits = 256;
  constexpr std::size_t kEveryStagesMax = 16;
  std::set<std::size_t> counts = {clusters};
  if (units > kManyUnits) {
    counts.insert({clusters / 2, 2 * clusters});
  } else {
    for (std::size_t p = 1; p <= kEveryStagesMax; ++p) counts.insert(p);
    for (std::size_t p = 2 * kEveryStagesMax; p <= units; p *= 2) counts.insert(p);
    for (std::size_t times = 2; times <= 4; ++times) counts.insert(times * clusters);
  }
  const std::size_t most = std::min<std::size_t>(units, blocks);
  std::erase_if(counts, [&](std::size_t p) { return p < 1 || p > most; });
  return counts;
}

/// What makes two units interchangeable: equal devices and NICs, on the same host or on hosts that
/// have nothing else.
using Likeness = std::tuple<std::string, std::uint32_t, double, double, std::vector<std::string>>;

Likeness likeness(const Cluster& cluster, HostId id, const Device& device, std::size_t unit_size) {
  const Host& host = cluster.hosts[id.index()];
  std::vector<std::string> nics;
  for (const Nic& nic : host.nics) {
    if (!nic.port_up) continue;
    nics.push_back(cluster.fabrics[nic.fabric.index()].name + " " + std::to_string(nic.gbit_s) +
                   " " + std::to_string(nic.latency_us) + " " + nic.subnet + " " +
                   std::string(to_string(nic.gid)));
  }
  std::sort(nics.begin(), nics.end());
  const bool alone = host.devices.size() < 2 * unit_size;
  return {cluster_of(cluster, id) + "/" + host.address, alone ? 0 : id.value() + 1, device.tflops,
          device.memory_gib, nics};
}

/// Every ordered partition of every subset of the units.
class Placements {
 public:
  Placements(std::vector<Unit> units, std::vector<std::size_t> kinds, std::size_t replicas_max)
      : units_(std::move(units)),
        kinds_(std::move(kinds)),
        replicas_max_(replicas_max),
        places_(units_.size(), 0) {}

  std::vector<Layout> all(std::size_t stages_max) {
    for (std::size_t stages = 1; stages <= stages_max; ++stages) place(0, stages);
    return std::move(found_);
  }

 private:
  /// Place 0: unused; i: stage i - 1. Of alike units the later one is never placed before.
  void place(std::size_t unit, std::size_t stages) {
    if (unit == units_.size()) return keep(stages);
    std::size_t first = 0;
    for (std::size_t before = 0; before < unit; ++before) {
      if (kinds_[before] == kinds_[unit]) first = std::max(first, places_[before]);
    }
    for (places_[unit] = first; places_[unit] <= stages; ++places_[unit]) place(unit + 1, stages);
  }

  void keep(std::size_t stages) {
    Layout layout(stages);
    for (std::size_t i = 0; i < units_.size(); ++i) {
      if (places_[i] > 0) layout[places_[i] - 1].push_back(units_[i]);
    }
    const bool sound = std::all_of(layout.begin(), layout.end(), [&](const auto& stage) {
      return !stage.empty() && stage.size() <= replicas_max_;
    });
    if (sound) found_.push_back(std::move(layout));
  }

  const std::vector<Unit> units_;
  const std::vector<std::size_t> kinds_;
  const std::size_t replicas_max_;
  std::vector<std::size_t> places_;
  std::vector<Layout> found_;
};

std::vector<Layout> every_layout(const Cluster& cluster, const std::vector<Unit>& units,
                                 std::uint32_t blocks, std::uint32_t leaves) {
  const auto hosts = hosts_by_device(cluster);
  const auto devices = devices_by_rank(cluster);
  std::vector<Likeness> kinds;
  std::vector<std::size_t> kind_of;
  for (const Unit& unit : units) {
    const auto mine =
        likeness(cluster, hosts[unit.front().index()], *devices[unit.front().index()], unit.size());
    const auto at = std::find(kinds.begin(), kinds.end(), mine);
    kind_of.push_back(static_cast<std::size_t>(at - kinds.begin()));
    if (at == kinds.end()) kinds.push_back(mine);
  }
  return Placements(units, kind_of, leaves).all(std::min<std::size_t>(units.size(), blocks));
}

}  // namespace

std::vector<Layout> layouts(const Cluster& cluster, const ModelCost& model, const JobShape& job,
                            const PlanOptions& options) {
  std::vector<Unit> units;
  const auto members = clusters_of(cluster, options.tensor);
  for (const ClusterMembers& member : members) {
    units.insert(units.end(), member.units.begin(), member.units.end());
  }
  std::sort(units.begin(), units.end());
  if (units.size() <= kExhaustiveUnitsMax && options.pipeline == 0 && options.data == 0) {
    return every_layout(cluster, units, model.blocks, job.reduction_leaves);
  }
  std::vector<Layout> found;
  const auto add = [&](const Result<Layout>& layout) {
    if (!layout || layout->empty()) return;
    const bool fits = std::all_of(layout->begin(), layout->end(), [&](const auto& stage) {
      return stage.size() <= job.reduction_leaves;
    });
    if (fits && std::find(found.begin(), found.end(), *layout) == found.end()) {
      found.push_back(*layout);
    }
  };
  for (const std::size_t stages :
       stage_counts(units.size(), members.size(), model.blocks, options)) {
    PlanOptions each = options;
    each.pipeline = static_cast<std::uint32_t>(stages);
    const auto layout = holmes_layout(cluster, each);
    add(layout);
    if (layout) add(Layout(layout->rbegin(), layout->rend()));
    add(megatron_layout(cluster, each));
  }
  return found;
}

}  // namespace holmes::partition
