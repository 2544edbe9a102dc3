#include "routes.hpp"

#include <algorithm>
#include <set>

#include <caf/send.hpp>

#include "codec.hpp"

namespace holmes::actors {

namespace {

using partition::GroupKind;
using transport::BulkKind;

bool is_for_stage(BulkKind kind) {
  return kind == BulkKind::kActivation || kind == BulkKind::kActivationGradient;
}

const std::vector<FabricId>& edge_paths(const partition::Plan& plan, StageIndex a, StageIndex b) {
  const auto edge = std::find_if(plan.edges.begin(), plan.edges.end(), [&](const auto& e) {
    return (e.from_stage == a && e.to_stage == b) || (e.from_stage == b && e.to_stage == a);
  });
  HOLMES_ASSERT(edge != plan.edges.end(), "no edge between neighbouring stages");
  return edge->paths;
}

/// Paths of the group of `kind` that has both devices.
const std::vector<FabricId>& group_paths(const partition::Plan& plan, GroupKind kind, DeviceId a,
                                         DeviceId b) {
  const auto has = [](const partition::Group& group, DeviceId device) {
    return std::find(group.devices.begin(), group.devices.end(), device) != group.devices.end();
  };
  const auto group = std::find_if(plan.groups.begin(), plan.groups.end(), [&](const auto& g) {
    return g.kind == kind && has(g, a) && has(g, b);
  });
  HOLMES_ASSERT(group != plan.groups.end(), "no group joins two devices that must talk");
  return group->paths;
}

std::size_t member_number(const std::vector<DeviceId>& members, DeviceId device) {
  const auto at = std::find(members.begin(), members.end(), device);
  HOLMES_ASSERT(at != members.end(), "device is no member of the plan");
  return static_cast<std::size_t>(at - members.begin());
}

}  // namespace

NicPair choose_nics(const partition::Cluster& cluster, const std::vector<FabricId>& paths,
                    HostId own, HostId peer) {
  for (const FabricId fabric : paths) {
    const auto here = cluster.nic_on(own, fabric);
    const auto there = cluster.nic_on(peer, fabric);
    if (here && there) return {*here, *there};
  }
  HOLMES_ASSERT(false, "a valid plan has a common fabric for every pair that talks");
  return {};
}

std::optional<NicPair> fastest_nics(const partition::Cluster& cluster, HostId own, HostId peer) {
  std::optional<NicPair> best;
  double best_gbit_s = 0;
  for (std::uint32_t fabric = 0; fabric < cluster.fabrics.size(); ++fabric) {
    const auto here = cluster.nic_on(own, FabricId(fabric));
    const auto there = cluster.nic_on(peer, FabricId(fabric));
    if (!here || !there) continue;
    const double gbit_s = std::min(cluster.hosts[own.index()].nics[here->index()].gbit_s,
                                   cluster.hosts[peer.index()].nics[there->index()].gbit_s);
    if (best && gbit_s <= best_gbit_s) continue;
    best = NicPair{*here, *there};
    best_gbit_s = gbit_s;
  }
  return best;
}

std::optional<DeviceId> vote_parent(const partition::Plan& plan, DeviceId device) {
  const auto members = plan.members();
  const auto number = member_number(members, device);
  if (number == 0) return std::nullopt;
  return members[(number - 1) / kVoteFanOut];
}

std::vector<DeviceId> vote_children(const partition::Plan& plan, DeviceId device) {
  const auto members = plan.members();
  const auto first = member_number(members, device) * kVoteFanOut + 1;
  const auto last = std::min(first + kVoteFanOut, members.size());
  std::vector<DeviceId> children;
  for (auto number = first; number < last; ++number) children.push_back(members[number]);
  return children;
}

Routes::Routes(Generation generation, std::shared_ptr<const partition::Plan> plan,
               std::shared_ptr<const partition::Cluster> cluster, HostId self,
               std::map<DeviceId, LocalMember> local, std::vector<caf::actor> nics,
               DevicePairs further)
    : generation_(generation),
      plan_(std::move(plan)),
      cluster_(std::move(cluster)),
      self_(self),
      local_(std::move(local)),
      nics_(std::move(nics)),
      further_(std::move(further)) {}

bool Routes::is_here(DeviceId device) const {
  return is_local(device) || cluster_->host_of(device) == self_;
}

const caf::actor& Routes::local_receiver(const transport::BulkTag& tag) const {
  const auto& member = local_.at(tag.destination);
  return is_for_stage(tag.kind) ? member.stage : member.replica;
}

NicPair Routes::pair_for(const transport::BulkTag& tag, HostId peer) const {
  const auto paths = [&]() -> const std::vector<FabricId>& {
    switch (tag.kind) {
      case BulkKind::kActivation:
        return edge_paths(*plan_, tag.stage, StageIndex(tag.stage.value() + 1));
      case BulkKind::kActivationGradient:
        return edge_paths(*plan_, StageIndex(tag.stage.value() - 1), tag.stage);
      case BulkKind::kGradientPartial:
      case BulkKind::kParameters:
        return group_paths(*plan_, GroupKind::kData, tag.source, tag.destination);
      case BulkKind::kTiedGradient:
      case BulkKind::kTiedParameters:
        return group_paths(*plan_, plan_->stages.size() == 1 ? GroupKind::kData : GroupKind::kTied,
                           tag.source, tag.destination);
      case BulkKind::kState:
      case BulkKind::kReducedGradient:
      case BulkKind::kCollective:
        break;
    }
    HOLMES_ASSERT(false, "a payload that no group or edge of the plan carries");
    return plan_->groups.front().paths;
  };
  if (tag.kind == BulkKind::kState || tag.kind == BulkKind::kReducedGradient) {
    const auto pair = fastest_nics(*cluster_, self_, peer);
    HOLMES_ASSERT(pair.has_value(), "state goes only between hosts that share a fabric");
    return *pair;
  }
  return choose_nics(*cluster_, paths(), self_, peer);
}

void Routes::send_tensor(const transport::BulkTag& tag, const transport::TensorShape& shape,
                         BufferView payload, const caf::actor& sender) const {
  if (is_local(tag.destination)) {
    caf::anon_send(local_receiver(tag), TensorArrived{tag, std::move(payload)});
    return;
  }
  const HostId peer = cluster_->host_of(tag.destination);
  caf::anon_send(nics_.at(pair_for(tag, peer).own.index()),
                 SendTensor{peer, tag, shape, std::move(payload), sender});
}

void Routes::reserve_tensor(const transport::BulkTag& tag, const transport::TensorShape& shape,
                            Buffer buffer, const caf::actor& receiver) const {
  HOLMES_ASSERT(!is_here(tag.source), "local payloads need no reservation");
  const HostId peer = cluster_->host_of(tag.source);
  caf::anon_send(nics_.at(pair_for(tag, peer).own.index()),
                 ReserveTensor{peer, tag, shape, std::move(buffer), receiver});
}

void Routes::send(const Vote& vote) const {
  if (const auto at = local_.find(vote.to); at != local_.end())
    caf::anon_send(at->second.replica, vote);
  else
    send_control(cluster_->host_of(vote.to), encode(vote));
}

void Routes::send(const Commit& commit) const {
  if (const auto at = local_.find(commit.to); at != local_.end())
    caf::anon_send(at->second.replica, commit);
  else
    send_control(cluster_->host_of(commit.to), encode(commit));
}

void Routes::send_control(HostId to, Buffer message) const {
  const auto group = std::find_if(plan_->groups.begin(), plan_->groups.end(),
                                  [](const auto& g) { return g.kind == GroupKind::kVote; });
  HOLMES_ASSERT(group != plan_->groups.end(), "a plan of several hosts has a vote group");
  const auto pair = choose_nics(*cluster_, group->paths, self_, to);
  caf::anon_send(nics_.at(pair.own.index()), SendControl{to, BufferView(std::move(message))});
}

std::vector<std::pair<HostId, NicPair>> Routes::links() const {
  std::set<std::tuple<HostId, NicId, NicId>> needed;
  const auto peer_of = [&](DeviceId a, DeviceId b) -> std::optional<HostId> {
    const HostId host_a = cluster_->host_of(a);
    const HostId host_b = cluster_->host_of(b);
    if (host_a == host_b || (host_a != self_ && host_b != self_)) return std::nullopt;
    return host_a == self_ ? host_b : host_a;
  };
  const auto need = [&](const std::vector<FabricId>& paths, DeviceId a, DeviceId b) {
    const auto peer = peer_of(a, b);
    if (!peer) return;
    const auto pair = choose_nics(*cluster_, paths, self_, *peer);
    needed.emplace(*peer, pair.own, pair.peer);
  };
  for (const auto& [a, b] : further_)
    if (const auto peer = peer_of(a, b))
      if (const auto pair = fastest_nics(*cluster_, self_, *peer))
        needed.emplace(*peer, pair->own, pair->peer);
  for (const auto& edge : plan_->edges)
    for (const auto& from : plan_->stages[edge.from_stage.index()].shares)
      for (const auto& to : plan_->stages[edge.to_stage.index()].shares)
        need(edge.paths, from.device, to.device);
  for (const auto& group : plan_->groups) {
    if (group.kind == GroupKind::kVote) {
      for (const DeviceId device : group.devices)
        if (const auto up = vote_parent(*plan_, device)) need(group.paths, device, *up);
      continue;
    }
    for (const DeviceId a : group.devices)
      for (const DeviceId b : group.devices)
        if (a < b) need(group.paths, a, b);
  }
  std::vector<std::pair<HostId, NicPair>> links;
  for (const auto& [peer, own, theirs] : needed) links.push_back({peer, {own, theirs}});
  return links;
}

}  // namespace holmes::actors
