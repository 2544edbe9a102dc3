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

void merge(ClusterMembers& into, const ClusterMembers& other) {
  into.name += " and " + other.name;
  into.hosts.insert(into.hosts.end(), other.hosts.begin(), other.hosts.end());
  into.devices.insert(into.devices.end(), other.devices.begin(), other.devices.end());
}

double joining_speed(const Cluster& cluster, const ClusterMembers& a, const ClusterMembers& b) {
  std::vector<HostId> hosts = a.hosts;
  hosts.insert(hosts.end(), b.hosts.begin(), b.hosts.end());
  return best_gbit_s(cluster, hosts);
}

/// Merges neighbours until `count` are left: always those that the fastest fabric joins, of equal
/// ones the smallest.
void merge_to(const Cluster& cluster, std::size_t count, std::vector<ClusterMembers>& members) {
  std::vector<double> speeds;  // of member i with member i + 1
  for (std::size_t i = 0; i + 1 < members.size(); ++i) {
    speeds.push_back(joining_speed(cluster, members[i], members[i + 1]));
  }
  const auto devices = [&](std::size_t i) {
    return members[i].devices.size() + members[i + 1].devices.size();
  };
  while (members.size() > count) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < speeds.size(); ++i) {
      if (speeds[i] > speeds[best] || (speeds[i] == speeds[best] && devices(i) < devices(best))) {
        best = i;
      }
    }
    merge(members[best], members[best + 1]);
    const auto at = static_cast<std::ptrdiff_t>(best);
    members.erase(members.begin() + at + 1);
    speeds.erase(speeds.begin() + at);
    for (const std::size_t i : {best - 1, best}) {  // best - 1 wraps around, and is out of range
      if (i < speeds.size()) speeds[i] = joining_speed(cluster, members[i], members[i + 1]);
    }
  }
}

/// How many stages each cluster is cut into: each further stage goes where replicas are most.
std::vector<std::size_t> stages_of(const std::vector<ClusterMembers>& members, std::size_t stages) {
  std::vector<std::size_t> counts(members.size(), 1);
  for (std::size_t used = members.size(); used < stages; ++used) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < members.size(); ++i) {
      // devices / stages, compared without rounding
      if (members[i].devices.size() * counts[best] > members[best].devices.size() * counts[i]) {
        best = i;
      }
    }
    ++counts[best];
  }
  return counts;
}

/// Cuts each cluster into its stages: runs of devices in rank order, the first ones longer.
Layout cut(const std::vector<ClusterMembers>& members, const std::vector<std::size_t>& counts) {
  Layout layout;
  for (std::size_t c = 0; c < members.size(); ++c) {
    const auto& devices = members[c].devices;
    auto next = devices.begin();
    for (std::size_t s = 0; s < counts[c]; ++s) {
      const std::size_t size =
          devices.size() / counts[c] + (s < devices.size() % counts[c] ? 1 : 0);
      const auto end = next + static_cast<std::ptrdiff_t>(size);
      layout.emplace_back(next, end);
      next = end;
    }
  }
  return layout;
}

Status keep_data_degree(std::uint32_t data, Layout& layout) {
  for (std::size_t stage = 0; stage < layout.size(); ++stage) {
    if (layout[stage].size() < data) {
      return invalid("parallel.data = " + std::to_string(data) + ", but stage " +
                     std::to_string(stage) + " has only " +
                     counted(layout[stage].size(), "device") +
                     "; lower parallel.data, or leave it at 0 to use all devices");
    }
    layout[stage].resize(data);
  }
  return {};
}

std::size_t stage_count(const std::vector<ClusterMembers>& members, const PlanOptions& options) {
  return options.pipeline == 0 ? members.size() : options.pipeline;
}

Status check_stages(std::size_t devices, std::size_t stages) {
  if (stages <= devices) return {};
  return invalid("parallel.pipeline = " + std::to_string(stages) + ", but the cluster has only " +
                 counted(devices, "device") + "; lower parallel.pipeline or add devices");
}

}  // namespace

std::vector<ClusterMembers> clusters_of(const Cluster& cluster) {
  std::vector<ClusterMembers> members;
  std::map<std::string, std::size_t> places;
  std::uint32_t rank = 0;
  for (std::uint32_t i = 0; i < cluster.hosts.size(); ++i) {
    const Host& host = cluster.hosts[i];
    const std::string name = cluster_of(cluster, HostId(i));
    const auto [place, added] = places.try_emplace(name, members.size());
    if (added) members.push_back({name, {}, {}});
    ClusterMembers& mine = members[place->second];
    mine.hosts.push_back(HostId(i));
    for (std::size_t d = 0; d < host.devices.size(); ++d) mine.devices.push_back(DeviceId(rank++));
  }
  return members;
}

Result<Layout> megatron_layout(const Cluster& cluster, const PlanOptions& options) {
  const std::size_t devices = cluster.device_count();
  const std::size_t stages = stage_count(clusters_of(cluster), options);
  HOLMES_TRY(check_stages(devices, stages));
  std::size_t used = devices;
  if (options.data > 0) {
    used = stages * options.data;
    if (used > devices) {
      return invalid(std::to_string(stages) +
                     " stages x parallel.data = " + std::to_string(options.data) + " need " +
                     std::to_string(used) + " devices, but the cluster has " +
                     std::to_string(devices) + "; lower parallel.data or parallel.pipeline");
    }
  } else if (devices % stages != 0) {
    return invalid(counted(devices, "device") + " cannot be dealt equally to " +
                   counted(stages, "stage") + ", as strategy megatron does; set parallel.pipeline" +
                   " to one of " + divisors(devices) + ", or set parallel.data to " +
                   std::to_string(devices / stages) + " and leave some unused");
  }
  Layout layout;
  for (const auto& group :
       data_groups(static_cast<std::uint32_t>(used), 1, static_cast<std::uint32_t>(stages))) {
    auto& stage = layout.emplace_back();
    for (const std::uint32_t rank : group) stage.push_back(DeviceId(rank));
  }
  return layout;
}

Result<Layout> holmes_layout(const Cluster& cluster, const PlanOptions& options) {
  auto members = clusters_of(cluster);
  const std::size_t stages = stage_count(members, options);
  HOLMES_TRY(check_stages(cluster.device_count(), stages));
  merge_to(cluster, stages, members);
  Layout layout = cut(members, stages_of(members, stages));
  if (options.data > 0) HOLMES_TRY(keep_data_degree(options.data, layout));
  return layout;
}

}  // namespace holmes::partition
