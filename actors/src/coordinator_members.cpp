// Hosts that come to a job that trains, and hosts that leave it because they were asked to. Nobody
// is lost, so that nothing is done in haste: both wait for a step of the generation in force.

#include <algorithm>

#include "coordinator.hpp"
#include "replan.hpp"

namespace holmes::actors {

/// At the start every host is awaited; later only those whose agent is gone.
bool Coordinator::may_come(HostId host) const {
  const auto& agent = agents_[host.index()];
  return phase_ == Phase::kJoining ? agent.connection == nullptr : agent.gone;
}

void Coordinator::greet(HostId host, std::shared_ptr<transport::Connection> connection) {
  forget_nics(host);  // what was wrong with them may have gone with its agent
  auto& agent = agents_[host.index()];
  agent = {};
  agent.life = ++lives_;
  agent.last_heard = clock().now();
  agent.connection = std::move(connection);
  // What an agent of this host that is gone still had under way is none of the new one's.
  const auto is_its = [this, host, life = agent.life] {
    return agents_[host.index()].life == life;
  };
  agent.connection->on_control(guarded([this, host, is_its](const Buffer& bytes) {
    if (is_its()) from_agent(host, bytes);
  }));
  agent.connection->on_closed(guarded([this, host, is_its](const Error& error) {
    if (is_its()) connection_lost(host, error);
  }));
  tell(host,
       Welcome{epoch_, to_toml(spec_.job), to_toml(spec_.job.cluster), spec_.data_hash, host});
}

void Coordinator::on(HostId host, const LeaveRequest&) {
  auto& agent = agents_[host.index()];
  if (leaving() || agent.leaving) return;
  agent.leaving = true;
  log().info("host " + name(host) + " is to leave");
  if (phase_ == Phase::kJoining) return;
  if (!agent.member) return dismiss(host);
  change_members();
}

/// Until the generation in force has committed a step, the next change waits: hosts that come and
/// go without end could otherwise keep the others from training.
bool Coordinator::may_change_members() const {
  return phase_ == Phase::kTraining && !regrouping_ && !stop_requested_ && !stopped_after_ &&
         last_committed_ && *last_committed_ >= first_step_ &&
         last_committed_->value() + 1 < spec_.job.train.steps;
}

/// Takes in who has come, and lets go who is to leave, by a generation of its own. A host that the
/// plan has no use for is kept as a spare, for the next time that one is lost.
void Coordinator::change_members() {
  if (!may_change_members()) return;
  std::vector<HostId> joining;
  std::vector<HostId> leavers;
  for (std::uint32_t host = 0; host < agents_.size(); ++host) {
    auto& agent = agents_[host];
    if (agent.gone || !agent.joined) continue;
    if (!agent.member) joining.emplace_back(host);
    if (agent.leaving) leavers.emplace_back(host);
    agent.member = true;
  }
  std::vector<HostNic> back;
  for (const auto& [nic, lost] : lost_nics_)
    if (lost.down && is_back(nic)) back.push_back(nic);
  if (joining.empty() && leavers.empty() && back.empty()) return;
  for (const HostNic nic : back) {
    lost_nics_[nic].down = false;
    set_port(nic, true);
  }
  const auto plan = plan_for(job_, plan_.job, hosts_to_plan_for());
  if (!plan) return keep_leavers(plan.error());
  // A plan names fabrics: with a NIC that is back it may be the same, and yet run otherwise.
  if (*plan == plan_ && back.empty()) return dismiss_leavers();
  stop_trial();
  regrouping_ = Regrouping{{}, clock().now()};
  for (const HostId host : joining) regrouping_->report.joined.push_back(name(host));
  for (const HostId host : leavers) regrouping_->report.left.push_back(name(host));
  for (const HostNic nic : back) regrouping_->report.nics_back.push_back(name(nic));
  regroup();
}

/// The others cannot train without them: the job ends as if it had been asked to, with a
/// checkpoint.
void Coordinator::keep_leavers(const Error& why) {
  bool any = false;
  for (std::uint32_t host = 0; host < agents_.size(); ++host) {
    if (!std::exchange(agents_[host].leaving, false) || agents_[host].gone) continue;
    any = true;
    log().warning("host " + name(HostId(host)) + " cannot leave: " + why.message() +
                  "; the job saves its state and stops instead");
    if (regrouping_) std::erase(regrouping_->report.left, name(HostId(host)));
  }
  if (any) stop_requested();
}

/// Everybody has the state that the leavers had. One that asked only after the plan was made has
/// its part in it, and waits for the next one.
void Coordinator::dismiss_leavers() {
  for (std::uint32_t host = 0; host < agents_.size(); ++host) {
    const auto& agent = agents_[host];
    if (agent.member && agent.leaving && !agent.gone && !trains(HostId(host)))
      dismiss(HostId(host));
  }
}

bool Coordinator::trains(HostId host) const {
  const auto members = plan_.members();
  return std::any_of(members.begin(), members.end(),
                     [&](DeviceId device) { return spec_.job.cluster.host_of(device) == host; });
}

/// An empty plan for one host. Its end is none of the job's.
void Coordinator::dismiss(HostId host) {
  Prepare nothing;
  nothing.epoch = epoch_;
  nothing.generation = Generation(generation_.value() + 1);
  tell(host, nothing);
  agents_[host.index()].gone = true;
  log().info("host " + name(host) + " has left");
}

}  // namespace holmes::actors
