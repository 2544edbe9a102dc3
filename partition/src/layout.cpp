#include "layout.hpp"

#include <algorithm>
#include <map>

#include "holmes/partition/groups.hpp"
#include "holmes/partition/reach.hpp"
#include "paths.hpp"
#include "text.hpp"

namespace holmes::partition {
namespace {

Error invalid(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

std::string divisors(std::size_t n) {
  std::vector<std::string> all;
  for (std::size_t i = 1; i <= n && all.size() < 16; ++i) {
    if (n % i == 0) all.push_back(std::to_string(i));
  }
  return joined(all);
}

/// How many stages each cluster is cut into: each further stage goes where replicas are most.
std::vector<std::size_t> stages_of(const std::vector<ClusterMembers>& members, std::size_t stages) {
  std::vector<std::size_t> counts(members.size(), 1);
  for (std::size_t used = members.size(); used < stages; ++used) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < members.size(); ++i) {
      // units / stages, compared without rounding
      if (members[i].units.size() * counts[best] > members[best].units.size() * counts[i]) {
        best = i;
      }
    }
    ++counts[best];
  }
  return counts;
}

/// Cuts each cluster into its stages: runs of units in rank order, the first ones longer.
Layout cut(std::vector<ClusterMembers>& members, const std::vector<std::size_t>& counts) {
  Layout layout;
  for (std::size_t c = 0; c < members.size(); ++c) {
    auto& units = members[c].units;
    auto next = std::make_move_iterator(units.begin());
    for (std::size_t s = 0; s < counts[c]; ++s) {
      const std::size_t size = units.size() / counts[c] + (s < units.size() % counts[c] ? 1 : 0);
      const auto end = next + static_cast<std::ptrdiff_t>(size);
      layout.emplace_back(next, end);
      next = end;
    }
  }
  return layout;
}

Status keep_data_degree(const PlanOptions& options, Layout& layout) {
  for (std::size_t stage = 0; stage < layout.size(); ++stage) {
    if (layout[stage].size() < options.data) {
      const std::string has = options.tensor == 1 ? counted(layout[stage].size(), "device")
                                                  : counted(layout[stage].size(), "tensor group");
      return invalid("parallel.data = " + std::to_string(options.data) + ", but stage " +
                     std::to_string(stage) + " has only " + has +
                     "; lower parallel.data, or leave it at 0 to use all devices");
    }
    layout[stage].resize(options.data);
  }
  return {};
}

std::size_t stage_count(const std::vector<ClusterMembers>& members, const PlanOptions& options) {
  return options.pipeline == 0 ? members.size() : options.pipeline;
}

Status check_stages(std::size_t units, std::size_t stages, std::uint32_t tensor) {
  if (stages <= units) return {};
  const std::string has =
      tensor == 1 ? counted(units, "device")
                  : counted(units, "group") + " of " + std::to_string(tensor) + " devices";
  return invalid("parallel.pipeline = " + std::to_string(stages) + ", but the cluster has only " +
                 has + "; lower parallel.pipeline or add devices");
}

/// Some host has the devices of a tensor group.
Status check_tensor(const Cluster& cluster, std::uint32_t tensor) {
  const auto largest = std::max_element(
      cluster.hosts.begin(), cluster.hosts.end(),
      [](const Host& a, const Host& b) { return a.devices.size() < b.devices.size(); });
  if (tensor > 0 && tensor <= largest->devices.size()) return {};
  return invalid("parallel.tensor = " + std::to_string(tensor) +
                 ": tensor groups stay within a host, but no host has over " +
                 counted(largest->devices.size(), "device") + " (" + largest->name +
                 "); lower parallel.tensor");
}

/// The ranks of a tensor group are on one host.
Status check_unit(const Cluster& cluster, const std::vector<HostId>& hosts, const Unit& unit) {
  for (const DeviceId device : unit) {
    if (hosts[device.index()] == hosts[unit.front().index()]) continue;
    return invalid("strategy megatron puts devices " + std::to_string(unit.front().value()) +
                   " to " + std::to_string(unit.back().value()) +
                   " into one tensor group, but these are on hosts " +
                   cluster.hosts[hosts[unit.front().index()].index()].name + " and " +
                   cluster.hosts[hosts[device.index()].index()].name +
                   "; set parallel.tensor to a divisor of each host's devices, or use strategy "
                   "holmes");
  }
  return {};
}

}  // namespace

std::vector<ClusterMembers> clusters_of(const Cluster& cluster, std::uint32_t tensor) {
  std::vector<ClusterMembers> members;
  std::map<std::string, std::size_t> places;
  std::uint32_t rank = 0;
  for (std::uint32_t i = 0; i < cluster.hosts.size(); ++i) {
    const std::uint32_t first = rank;
    rank += static_cast<std::uint32_t>(cluster.hosts[i].devices.size());
    if (rank - first < tensor) continue;  // too few devices for a group
    const std::string name = cluster_of(cluster, HostId(i));
    const auto [place, added] = places.try_emplace(name, members.size());
    if (added) members.push_back({name, {}, {}});
    ClusterMembers& mine = members[place->second];
    mine.hosts.push_back(HostId(i));
    for (std::uint32_t d = first; d + tensor <= rank; d += tensor) {
      Unit& unit = mine.units.emplace_back();
      for (std::uint32_t j = 0; j < tensor; ++j) unit.push_back(DeviceId(d + j));
    }
  }
  return members;
}

Result<Layout> megatron_layout(const Cluster& cluster, const PlanOptions& options) {
  HOLMES_TRY(check_tensor(cluster, options.tensor));
  const std::size_t devices = cluster.device_count();
  const std::size_t stages = stage_count(clusters_of(cluster, options.tensor), options);
  HOLMES_TRY(check_stages(devices / options.tensor, stages, options.tensor));
  const std::size_t each = stages * options.tensor;
  const std::string product =
      options.tensor == 1 ? "" : " x parallel.tensor = " + std::to_string(options.tensor);
  std::size_t used = devices;
  if (options.data > 0) {
    used = each * options.data;
    if (used > devices) {
      return invalid(std::to_string(stages) + " stages" + product +
                     " x parallel.data = " + std::to_string(options.data) + " need " +
                     std::to_string(used) + " devices, but the cluster has " +
                     std::to_string(devices) + "; lower parallel.data or parallel.pipeline");
    }
  } else if (devices % each != 0) {
    return invalid(counted(devices, "device") + " cannot be dealt equally to " +
                   counted(stages, "stage") + product +
                   ", as strategy megatron does; set parallel.pipeline" + " to one of " +
                   divisors(devices / options.tensor) + ", or set parallel.data to " +
                   std::to_string(devices / each) + " and leave some unused");
  }
  const auto hosts = hosts_by_device(cluster);
  const auto groups = data_groups(static_cast<std::uint32_t>(used), options.tensor,
                                  static_cast<std::uint32_t>(stages));
  Layout layout(stages);
  for (std::size_t stage = 0; stage < stages; ++stage) {
    layout[stage].resize(used / each);
    for (std::uint32_t j = 0; j < options.tensor; ++j) {
      const auto& ranks = groups[stage * options.tensor + j];
      for (std::size_t k = 0; k < ranks.size(); ++k) {
        layout[stage][k].push_back(DeviceId(ranks[k]));
      }
    }
    for (const Unit& unit : layout[stage]) HOLMES_TRY(check_unit(cluster, hosts, unit));
  }
  return layout;
}

Result<Layout> holmes_layout(const Cluster& cluster, const PlanOptions& options) {
  HOLMES_TRY(check_tensor(cluster, options.tensor));
  auto members = clusters_of(cluster, options.tensor);
  const std::size_t stages = stage_count(members, options);
  std::size_t units = 0;
  for (const ClusterMembers& member : members) units += member.units.size();
  HOLMES_TRY(check_stages(units, stages, options.tensor));
  merge_to(cluster, stages, members);
  order_for_edges(cluster, members);
  Layout layout = cut(members, stages_of(members, stages));
  if (options.data > 0) HOLMES_TRY(keep_data_degree(options, layout));
  return layout;
}

}  // namespace holmes::partition
