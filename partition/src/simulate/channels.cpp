#include "simulate/channels.hpp"

#include <algorithm>

#include "holmes/base/assert.hpp"
#include "holmes/partition/reach.hpp"
#include "network.hpp"

namespace holmes::partition {
namespace {

constexpr ChannelId kNone = ~ChannelId{0};
constexpr double kGigabitBytes = 1e9 / 8;
constexpr double kMicro = 1e-6;

}  // namespace

double SpeedProfile::finish(double start_s, double seconds) const {
  double factor = 1;
  for (const Part& part : parts) {
    if (part.from_s <= start_s) {
      factor = part.factor;
      continue;
    }
    const double left = seconds / factor;
    if (start_s + left <= part.from_s) break;
    seconds -= (part.from_s - start_s) * factor;
    start_s = part.from_s;
    factor = part.factor;
  }
  return start_s + seconds / factor;
}

SpeedProfile profile_of(const std::vector<SpeedChange>& changes, SpeedChange::What what,
                        std::size_t index) {
  SpeedProfile profile;
  for (const SpeedChange& change : changes) {
    if (change.what == what && change.index == index) {
      profile.parts.push_back({change.at_s, change.factor});
    }
  }
  std::stable_sort(profile.parts.begin(), profile.parts.end(),
                   [](const auto& a, const auto& b) { return a.from_s < b.from_s; });
  return profile;
}

Channels::Channels(const Cluster& cluster, const SimulateOptions& options)
    : cluster_(cluster),
      options_(options),
      nics_(cluster.hosts.size() * cluster.fabrics.size() * 2, kNone) {}

double Channels::nic_gbit_s(HostId host, FabricId fabric) const {
  double gbit_s = 0;
  for (const NicId nic : rails(cluster_, host, fabric)) {
    gbit_s += cluster_.hosts[host.index()].nics[nic.index()].gbit_s;
  }
  return gbit_s;
}

ChannelId Channels::add(ChannelUse use, double gbit_s, NicKind kind, SpeedProfile profile) {
  HOLMES_ASSERT(gbit_s > 0, "a channel carries something");
  const double efficiency = options_.cost.network_efficiency[static_cast<std::size_t>(kind)];
  channels_.push_back({use, gbit_s * kGigabitBytes * efficiency, 0, std::move(profile)});
  return static_cast<ChannelId>(channels_.size() - 1);
}

ChannelId Channels::nic(HostId host, FabricId fabric, bool send) {
  ChannelId& id =
      nics_[(host.index() * cluster_.fabrics.size() + fabric.index()) * 2 + (send ? 1 : 0)];
  if (id == kNone) {
    ChannelUse use;
    use.kind = send ? ChannelUse::Kind::kSend : ChannelUse::Kind::kReceive;
    use.host = host;
    use.fabric = fabric;
    id = add(use, nic_gbit_s(host, fabric), cluster_.fabrics[fabric.index()].kind,
             profile_of(options_.changes, SpeedChange::What::kFabric, fabric.index()));
  }
  return id;
}

bool Channels::is_forth(HostId from, HostId to, FabricId fabric) const {
  const auto end = [&](HostId host) {
    const NicId nic = rails(cluster_, host, fabric).front();
    return std::pair(cluster_of(cluster_, host),
                     cluster_.hosts[host.index()].nics[nic.index()].fabric);
  };
  return end(from) < end(to);
}

ChannelId Channels::trunk(FabricId fabric, bool forth) {
  const auto found = trunks_.find({fabric, forth});
  if (found != trunks_.end()) return found->second;
  ChannelUse use;
  use.kind = ChannelUse::Kind::kTrunk;
  use.forth = forth;
  use.fabric = fabric;
  const Fabric& of = cluster_.fabrics[fabric.index()];
  return trunks_[{fabric, forth}] =
             add(use, of.trunk_gbit_s, of.kind,
                 profile_of(options_.changes, SpeedChange::What::kFabric, fabric.index()));
}

ChannelId Channels::link(std::size_t index, bool forth) {
  const auto found = links_.find({index, forth});
  if (found != links_.end()) return found->second;
  ChannelUse use;
  use.kind = ChannelUse::Kind::kLink;
  use.forth = forth;
  use.link = index;
  return links_[{index, forth}] =
             add(use, cluster_.links[index].gbit_s, NicKind::kEthernet,
                 profile_of(options_.changes, SpeedChange::What::kLink, index));
}

const Channels::Way* Channels::way(HostId from, HostId to, FabricId fabric) {
  const auto [place, added] = ways_.try_emplace({from, to, fabric});
  if (added) {
    if (const auto found = route(cluster_, from, to, fabric)) {
      Way made;
      made.send = nic(from, fabric, true);
      made.receive = nic(to, fabric, false);
      const bool forth = is_forth(from, to, fabric);
      for (const FabricId trunk_of : found->trunks) made.shared.push_back(trunk(trunk_of, forth));
      for (const std::size_t index : found->links) made.shared.push_back(link(index, forth));
      made.latency_s = found->latency_us * kMicro;
      place->second = std::move(made);
    }
  }
  return place->second ? &*place->second : nullptr;
}

const Channels::Way& Channels::way_on(HostId from, HostId to, const std::vector<FabricId>& paths) {
  for (const FabricId fabric : paths) {
    if (const Way* found = way(from, to, fabric)) return *found;
  }
  for (std::uint32_t fabric = 0; fabric < cluster_.fabrics.size(); ++fabric) {
    if (const Way* found = way(from, to, FabricId(fabric))) return *found;
  }
  assertion_failed("hosts reach each other", __FILE__, __LINE__,
                   "a valid plan has a path for every pair of hosts that talk");
}

double Channels::serve(ChannelId id, double at_s, double bytes) {
  Channel& channel = channels_[id];
  const double seconds = bytes / channel.bytes_s;
  const double start_s = std::max(at_s, channel.free_s);
  channel.free_s =
      channel.profile.parts.empty() ? start_s + seconds : channel.profile.finish(start_s, seconds);
  channel.use.bytes += bytes;
  channel.use.busy_s += channel.free_s - start_s;
  if (options_.record && bytes > 0) {
    records_.push_back({channel.use, start_s, channel.free_s});
    records_.back().channel.bytes = bytes;
    records_.back().channel.busy_s = channel.free_s - start_s;
  }
  return channel.free_s;
}

double Channels::transfer(const Way& way, double at_s, double bytes) {
  double end_s = std::max(serve(way.send, at_s, bytes), serve(way.receive, at_s, bytes));
  for (const ChannelId shared : way.shared) end_s = std::max(end_s, serve(shared, at_s, bytes));
  return end_s + way.latency_s;
}

void Channels::begin_step() {
  for (Channel& channel : channels_) channel.use.bytes = channel.use.busy_s = 0;
}

std::vector<ChannelUse> Channels::used() const {
  std::vector<ChannelUse> result;
  for (const Channel& channel : channels_) {
    if (channel.use.bytes > 0) result.push_back(channel.use);
  }
  return result;
}

}  // namespace holmes::partition
