#include "holmes/partition/nccl.hpp"

#include <algorithm>
#include <charconv>
#include <map>

#include "holmes/partition/reach.hpp"
#include "network.hpp"
#include "text.hpp"

namespace holmes::partition {
namespace {

bool is_rdma(NicKind kind) {
  return kind == NicKind::kInfiniBand || kind == NicKind::kRoce;
}

/// As C's atoi does: what is no number counts as 0.
std::uint32_t port_number(std::string_view text) {
  std::uint32_t port = 0;
  std::from_chars(text.data(), text.data() + text.size(), port);
  return port;
}

std::string setting(std::string_view variable, const std::string& value) {
  return std::string(variable) + "=" + value.substr(0, 64);
}

Result<bool> is_set(const std::string& text) {
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size()) return value != 0;
  return Error(ErrorCode::kInvalidArgument,
               "NCCL_IB_DISABLE=" + text.substr(0, 64) + " is no whole number; use 0 or 1");
}

/// NICs that are near one of `devices` (positions on the host), or all when none says so.
std::vector<NicId> near_ones(const Host& host, const std::vector<NicId>& nics,
                             const std::vector<std::uint32_t>& devices) {
  std::vector<NicId> near;
  for (const NicId id : nics) {
    const auto& list = host.nics[id.index()].near;
    const auto is_near = [&](std::uint32_t device) {
      return std::find(list.begin(), list.end(), device) != list.end();
    };
    if (std::any_of(devices.begin(), devices.end(), is_near)) near.push_back(id);
  }
  return near.empty() ? nics : near;
}

/// Positions of the group's devices, by host.
std::map<HostId, std::vector<std::uint32_t>> by_host(const Cluster& cluster, const Group& group) {
  std::vector<DeviceId> devices = group.devices;
  std::sort(devices.begin(), devices.end());
  std::map<HostId, std::vector<std::uint32_t>> found;
  auto next = devices.begin();
  std::uint32_t rank = 0;
  for (std::uint32_t h = 0; h < cluster.hosts.size() && next != devices.end(); ++h) {
    const std::uint32_t first = rank;
    rank += static_cast<std::uint32_t>(cluster.hosts[h].devices.size());
    for (; next != devices.end() && next->value() < rank; ++next) {
      found[HostId(h)].push_back(next->value() - first);
    }
  }
  return found;
}

}  // namespace

NameFilter::NameFilter(std::string_view text) {
  exclude_ = text.starts_with('^');
  if (exclude_) text.remove_prefix(1);
  exact_ = text.starts_with('=');
  if (exact_) text.remove_prefix(1);
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const std::size_t colon = item.find(':');
    Entry entry{std::string(item.substr(0, colon)), std::nullopt};
    if (colon != std::string_view::npos) entry.port = port_number(item.substr(colon + 1));
    if (!entry.name.empty()) entries_.push_back(std::move(entry));
  }
}

bool NameFilter::allows(std::string_view name, std::uint32_t port) const {
  const auto matches = [&](const Entry& entry) {
    if (entry.port && *entry.port != port) return false;
    return exact_ ? name == entry.name : name.starts_with(entry.name);
  };
  // An empty list matches everything, so that "^" alone keeps everything out.
  const bool listed = entries_.empty() || std::any_of(entries_.begin(), entries_.end(), matches);
  return listed != exclude_;
}

Status apply(const NcclOverrides& overrides, Cluster& cluster) {
  bool no_rdma = false;
  if (overrides.ib_disable) {
    HOLMES_TRY_ASSIGN(no_rdma, is_set(*overrides.ib_disable));
  }
  // NCCL ignores an interface list of fewer than two characters.
  const bool has_sockets = overrides.socket_ifname && overrides.socket_ifname->size() > 1;
  const NameFilter sockets(has_sockets ? *overrides.socket_ifname : "");
  const NameFilter adapters(overrides.ib_hca.value_or(""));
  for (Host& host : cluster.hosts) {
    for (Nic& nic : host.nics) {
      if (!nic.use) continue;
      const bool rdma = is_rdma(cluster.fabrics[nic.fabric.index()].kind);
      if (rdma && no_rdma) {
        nic.kept_out_by = setting("NCCL_IB_DISABLE", *overrides.ib_disable);
      } else if (rdma && !adapters.allows(nic.name)) {
        nic.kept_out_by = setting("NCCL_IB_HCA", *overrides.ib_hca);
      } else if (!rdma && !sockets.allows(nic.name)) {
        nic.kept_out_by = setting("NCCL_SOCKET_IFNAME", *overrides.socket_ifname);
      }
      nic.use = nic.kept_out_by.empty();
    }
  }
  return {};
}

std::optional<NcclSettings> nccl_settings(const Cluster& cluster, const Group& group) {
  if (group.kind == GroupKind::kVote) return std::nullopt;
  NcclSettings settings;
  const auto hosts = by_host(cluster, group);
  for (const auto& [host, positions] : hosts) {
    for (const std::uint32_t position : positions) {
      if (!cluster.hosts[host.index()].devices[position].is_gpu()) return std::nullopt;
    }
  }
  if (hosts.size() < 2) return settings;
  const FabricId fabric = group.paths.front();
  if (!cluster.fabrics[fabric.index()].trusted) return std::nullopt;
  settings.net_name = is_rdma(cluster.fabrics[fabric.index()].kind) ? "IB" : "Socket";
  for (const auto& [id, positions] : hosts) {
    const Host& host = cluster.hosts[id.index()];
    const auto nics = rails(cluster, id, fabric);
    if (nics.empty() || host.nics[nics.front().index()].fabric != fabric) return std::nullopt;
    settings.nics.push_back({id, near_ones(host, nics, positions)});
  }
  return settings;
}

std::string describe(const Cluster& cluster, const NcclSettings& settings) {
  if (settings.net_name.empty()) return "within the host";
  constexpr std::size_t kShown = 4;
  std::string text = settings.net_name + " over ";
  for (std::size_t i = 0; i < std::min(settings.nics.size(), kShown); ++i) {
    const Host& host = cluster.hosts[settings.nics[i].host.index()];
    std::vector<std::string> names;
    for (const NicId nic : settings.nics[i].nics) names.push_back(host.nics[nic.index()].name);
    text += (i == 0 ? "" : "; ") + host.name + ": " + joined(names);
  }
  if (settings.nics.size() <= kShown) return text;
  return text + "; and " + counted(settings.nics.size() - kShown, "host") + " more";
}

}  // namespace holmes::partition
