// The members change: those that are there now agree on where to go on from, get a plan, move state
// to where it is needed, and train.

#include <algorithm>

#include "coordinator.hpp"
#include "replan.hpp"

namespace holmes::actors {

namespace {

/// Generations that begin for nothing but links that broke; then the network is at fault.
constexpr int kRelinksMax = 3;

std::size_t bytes_between_hosts(const std::vector<StateTransfer>& transfers,
                                const partition::Cluster& cluster) {
  std::size_t bytes = 0;
  for (const auto& transfer : transfers)
    if (cluster.host_of(transfer.source) != cluster.host_of(transfer.destination))
      bytes += transfer.piece.elements.size() * state_parts(transfer.use) * sizeof(float);
  return bytes;
}

}  // namespace

/// Before everybody has joined, the start has failed. Where nobody is left there is nothing to go
/// on with.
bool Coordinator::can_go_on() const {
  return spec_.job.resilience.on_loss == OnLoss::kContinue && phase_ != Phase::kJoining &&
         !leaving() && std::any_of(agents_.begin(), agents_.end(), [](const Agent& agent) {
           return agent.member && !agent.gone;
         });
}

void Coordinator::lose(HostId host, Incident incident) {
  auto& agent = agents_[host.index()];
  agent.gone = true;
  if (agent.connection) agent.connection->close();
  if (!agent.member && phase_ != Phase::kJoining)
    return log().warning("host " + name(host) + " cannot take part: " + incident.cause.message());
  if (!can_go_on()) return fail(std::move(incident));
  const Duration silent = clock().now() - agent.last_heard;
  if (!regrouping_) regrouping_ = Regrouping{{}, clock().now()};
  auto& report = regrouping_->report;
  if (report.lost.empty()) report.silent = silent;
  report.lost.push_back(name(host));
  std::erase(report.joined, name(host));
  std::erase(report.left, name(host));
  recover(std::move(incident));
}

/// Links are lost, but both ends live. Where other NICs can do their work, they do. Else a host
/// that has lost more peers than any other is cut off, and lost. Where a single link broke,
/// everybody stays, and the link is opened again.
void Coordinator::links_lost() {
  if (leaving() || suspicions_.empty()) return;
  auto blamed = blame();
  if (use_other_nics(blamed)) return;
  auto& [host, incident] = blamed;
  if (host) return lose(*host, std::move(incident));
  if (!can_go_on() || ++relinks_ > kRelinksMax) return fail(std::move(incident));
  if (!regrouping_) regrouping_ = Regrouping{{}, clock().now()};
  recover(std::move(incident));
}

void Coordinator::recover(Incident incident) {
  stop_trial();
  incident.goes_on = true;
  resources_.on_event(std::move(incident));
  regroup();
}

/// Announces the next generation. A loss before it has begun comes here again.
void Coordinator::regroup() {
  phase_ = Phase::kAgreeing;
  generation_ = Generation(generation_.value() + 1);
  suspicions_.clear();
  validations_.clear();
  saves_.clear();
  for (auto& agent : agents_) {
    agent.quiet = agent.ready = false;
    agent.report = {};
  }
  set_deadline(spec_.agree_deadline, [this] {
    for (std::uint32_t host = 0; host < agents_.size(); ++host)
      if (agents_[host].member && !agents_[host].gone && !agents_[host].quiet)
        return lose(HostId(host), running_operation(),
                    Error(ErrorCode::kTimeout, "it did not stop its work in time"));
  });
  tell_members(Announce{epoch_, generation_});
}

/// Nothing comes from a host but what its own devices can hold.
bool Coordinator::is_sound(HostId host, const AgentQuiet& quiet) const {
  const auto& cluster = spec_.job.cluster;
  return std::all_of(quiet.held.begin(), quiet.held.end(), [&](const HeldState& state) {
    if (state.device.index() >= cluster.device_count() || cluster.host_of(state.device) != host)
      return false;
    return std::all_of(state.pieces.begin(), state.pieces.end(), [&](const PieceName& piece) {
      return piece.layer < table_->size() && piece.elements.begin < piece.elements.end &&
             piece.elements.end <= (*table_)[piece.layer].elements;
    });
  });
}

/// Everybody that is left is quiet, and has said what it holds.
void Coordinator::resume() {
  regrouping_->report.agree += phase_duration();
  std::vector<HeldState> held;
  std::vector<CommittedStep> seen;
  for (const auto& agent : agents_) {
    held.insert(held.end(), agent.report.held.begin(), agent.report.held.end());
    seen.insert(seen.end(), agent.report.commits.begin(), agent.report.commits.end());
  }
  const auto resumption = resume_from(begun_.step, last_commit_, seen, held);
  for (const auto& step : resumption.unheard) committed(step);
  auto plan = plan_for(job_, plan_.job, hosts_to_plan_for());
  if (!plan) {
    keep_leavers(plan.error());  // they are needed after all
    plan = plan_for(job_, plan_.job, hosts_to_plan_for());
  }
  regrouping_->report.plan += phase_duration();
  if (!plan) return fail(incident("", "planning for the hosts that are left", plan.error()));
  plan_ = *std::move(plan);
  std::erase_if(held,
                [&](const HeldState& state) { return !is_usable(state, resumption.first_step); });
  if (auto order = resume_with(resumption, held)) prepare(*std::move(order));
}

std::vector<bool> Coordinator::hosts_to_plan_for() const {
  std::vector<bool> hosts;
  for (const auto& agent : agents_) hosts.push_back(agent.member && !agent.gone && !agent.leaving);
  return hosts;
}

/// The order to go on; empty when the job has failed.
std::optional<Prepare> Coordinator::resume_with(const Resumption& resumption,
                                                const std::vector<HeldState>& held) {
  Prepare order;
  order.first_step = resumption.first_step;
  if (resumption.first_step != begun_.step) {
    const auto& cluster = job_.cluster;
    const auto keepers = keepers_of(plan_, job_);
    auto transfers = state_transfers({plan_, keepers, cluster, spec_.job.model, *table_, held});
    if (transfers) {
      regrouping_->report.moved = bytes_between_hosts(*transfers, cluster);
      order.transfers = *std::move(transfers);
      order.settle_norm = resumption.settle_norm;
      order.stop = stopped_after_.has_value();
      order.save = save_is_due(order.first_step);
      regrouping_->report.first_step = order.first_step;
      return order;
    }
    if (!go_back(order.first_step)) return std::nullopt;
  }
  order.first_step = regrouping_->report.first_step = begun_.step;
  order.checkpoint = begun_.folder;
  return order;
}

/// Nobody left has all of the state: the job goes on from its last checkpoint, if there is one.
bool Coordinator::go_back(Step from) {
  if (published_) begun_ = *published_;
  if (begun_.folder.empty()) {
    fail(incident("", "recovery",
                  Error(ErrorCode::kUnavailable,
                        "both copies of a part of the state are gone with the hosts that were "
                        "lost, and no checkpoint has been saved; set run.checkpoint_every")));
    return false;
  }
  regrouping_->report.steps_lost += from.value() - begun_.step.value();
  last_commit_.reset();
  last_committed_.reset();
  if (begun_.step.value() > 0) last_committed_ = Step(begun_.step.value() - 1);
  stopped_after_.reset();
  validated_.reset();
  return true;
}

/// A checkpoint that the lost generation owed.
bool Coordinator::save_is_due(Step step) const {
  const auto every = spec_.job.run.checkpoint_every;
  const bool wanted = stopped_after_ || step.value() == spec_.job.train.steps ||
                      (every != 0 && step.value() % every == 0);
  return wanted && saved_ != step && publishing_ != step;
}

/// Time since the phase before was over. Where another loss makes it all begin anew, what was done
/// until then counts as agreeing.
Duration Coordinator::phase_duration() {
  const TimePoint before = std::exchange(regrouping_->reached, clock().now());
  return regrouping_->reached - before;
}

void Coordinator::regrouped() {
  auto& report = regrouping_->report;
  report.first = phase_duration();
  report.generation = generation_;
  resources_.on_event(std::move(report));
  regrouping_.reset();
}

}  // namespace holmes::actors
