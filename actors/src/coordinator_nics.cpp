// NICs that are lost while their hosts live: others do their work, if any can, and they are tried
// again now and then. A NIC that is lost again and again is tried less and less often.

#include <algorithm>

#include "coordinator.hpp"
#include "replan.hpp"

namespace holmes::actors {

namespace {

constexpr Duration kPauseMax = std::chrono::minutes(10);

/// The NIC of `peer` at the other end of a link of `own`.
std::optional<HostNic> other_end(const partition::Cluster& cluster, HostNic own, HostId peer) {
  const FabricId fabric = cluster.hosts[own.host.index()].nics[own.nic.index()].fabric;
  const auto nic = cluster.nic_on(peer, fabric);
  return nic ? std::optional(HostNic{peer, *nic}) : std::nullopt;
}

std::optional<NicId> nic_named(const partition::Host& host, const std::string& name) {
  for (std::uint32_t nic = 0; nic < host.nics.size(); ++nic)
    if (host.nics[nic].name == name) return NicId(nic);
  return std::nullopt;
}

std::vector<HostId> hosts_of(const partition::Plan& plan, const partition::Cluster& cluster) {
  std::vector<HostId> hosts;
  for (const DeviceId device : plan.members()) hosts.push_back(cluster.host_of(device));
  std::sort(hosts.begin(), hosts.end());
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  return hosts;
}

}  // namespace

/// Of a host that is to blame its own ends of the links that were lost, else both ends.
std::set<HostNic> Coordinator::nics_at_fault(const Blame& blame) const {
  std::set<HostNic> nics;
  const auto add = [&](HostNic nic) {
    if (!blame.host || *blame.host == nic.host) nics.insert(nic);
  };
  for (const auto& [reporter, report] : suspicions_) {
    const auto nic = nic_named(job_.cluster.hosts[reporter.index()], report.nic);
    if (!nic) continue;
    add({reporter, *nic});
    if (const auto end = other_end(job_.cluster, {reporter, *nic}, report.peer)) add(*end);
  }
  return nics;
}

/// False: nothing was done, as somebody would be lost by it, or it may have been a passing fault of
/// a single link.
bool Coordinator::use_other_nics(Blame& blame) {
  if (!can_go_on()) return false;
  const bool was_silent = blame.incident.cause.code() == ErrorCode::kTimeout;
  if (!blame.host && !was_silent && relinks_ == 0) return false;
  const auto nics = nics_at_fault(blame);
  if (nics.empty()) return false;
  JobConfig without = job_;
  for (const auto& [host, nic] : nics)
    without.cluster.hosts[host.index()].nics[nic.index()].port_up = false;
  const auto plan = plan_for(without, plan_.job, hosts_to_plan_for());
  if (!plan || hosts_of(*plan, job_.cluster) != hosts_of(plan_, job_.cluster)) return false;
  if (!regrouping_) regrouping_ = Regrouping{{}, clock().now()};
  stop_using(nics);
  auto& incident = blame.incident;
  incident.host = "";
  incident.nic = "";
  for (const HostNic nic : nics) incident.nic += (incident.nic.empty() ? "" : ", ") + name(nic);
  incident.other_nics = true;
  recover(std::move(incident));
  return true;
}

void Coordinator::stop_using(const std::set<HostNic>& nics) {
  for (const HostNic nic : nics) {
    set_port(nic, false);
    regrouping_->report.nics_lost.push_back(name(nic));
    std::erase(regrouping_->report.nics_back, name(nic));
    const auto known = lost_nics_.find(nic);
    const Duration first = std::chrono::milliseconds(spec_.job.resilience.nic_retry_ms);
    const Duration pause =
        known == lost_nics_.end() ? first : std::min(2 * known->second.pause, kPauseMax);
    lost_nics_[nic].down = true;
    try_again_later(nic, pause);
  }
}

void Coordinator::try_again_later(HostNic nic, Duration pause) {
  auto& lost = lost_nics_[nic];
  executor().cancel(lost.timer);
  lost.pause = pause;
  lost.heard.clear();
  lost.timer = executor().post_after(pause, guarded([this, nic] { try_again(nic); }));
}

/// Of two hosts the one with the lower number dials, as for every link.
void Coordinator::try_again(HostNic nic) {
  auto& lost = lost_nics_[nic];
  if (leaving() || !lost.down || agents_[nic.host.index()].gone) return;
  try_again_later(nic, lost.pause);
  for (const HostNic peer : peers_of(nic)) {
    const auto& [from, to] = std::minmax(nic, peer);
    const auto& addresses = agents_[to.host.index()].nics;
    const auto at = std::find_if(addresses.begin(), addresses.end(),
                                 [to = to](const auto& each) { return each.nic == to.nic; });
    if (at != addresses.end()) tell(from.host, TryLink{epoch_, from.nic, to.host, at->address});
  }
}

void Coordinator::on(HostId host, const LinkWorks& link) {
  const auto& hosts = spec_.job.cluster.hosts;
  if (link.nic.index() >= hosts[host.index()].nics.size() || link.peer.index() >= hosts.size())
    return refuse(host, "news of a link that there cannot be");
  const HostNic own{host, link.nic};
  const auto peer = other_end(spec_.job.cluster, own, link.peer);
  if (!peer) return;
  if (const auto at = lost_nics_.find(own); at != lost_nics_.end()) at->second.heard.insert(*peer);
  if (const auto at = lost_nics_.find(*peer); at != lost_nics_.end()) at->second.heard.insert(own);
  change_members();
}

/// The NICs of members that it had links to, or could have.
std::vector<HostNic> Coordinator::peers_of(HostNic nic) const {
  std::vector<HostNic> peers;
  for (std::uint32_t host = 0; host < agents_.size(); ++host) {
    if (HostId(host) == nic.host || !agents_[host].member || agents_[host].gone) continue;
    if (const auto end = other_end(spec_.job.cluster, nic, HostId(host))) peers.push_back(*end);
  }
  return peers;
}

/// A peer that is down itself says nothing of it, unless there is none other.
bool Coordinator::is_back(HostNic nic) const {
  const auto& heard = lost_nics_.at(nic).heard;
  auto peers = peers_of(nic);
  const auto is_down = [this](HostNic peer) {
    const auto at = lost_nics_.find(peer);
    return at != lost_nics_.end() && at->second.down;
  };
  if (!std::all_of(peers.begin(), peers.end(), is_down)) std::erase_if(peers, is_down);
  const bool alone = !peers.empty() && is_down(peers.front());
  const auto works = [&heard](HostNic peer) { return heard.contains(peer); };
  return alone ? std::any_of(peers.begin(), peers.end(), works)
               : !peers.empty() && std::all_of(peers.begin(), peers.end(), works);
}

void Coordinator::forget_nics(HostId host) {
  std::erase_if(lost_nics_, [&](auto& entry) {
    if (entry.first.host != host) return false;
    executor().cancel(entry.second.timer);
    if (entry.second.down) set_port(entry.first, true);
    return true;
  });
}

void Coordinator::set_port(HostNic nic, bool up) {
  job_.cluster.hosts[nic.host.index()].nics[nic.nic.index()].port_up = up;
}

std::vector<HostNic> Coordinator::nics_down() const {
  std::vector<HostNic> down;
  for (const auto& [nic, lost] : lost_nics_)
    if (lost.down) down.push_back(nic);
  return down;
}

std::string Coordinator::name(HostNic nic) const {
  const auto& host = spec_.job.cluster.hosts[nic.host.index()];
  return host.name + "/" + host.nics[nic.nic.index()].name;
}

}  // namespace holmes::actors
