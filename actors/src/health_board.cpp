#include "health_board.hpp"

#include <algorithm>
#include <set>

namespace holmes::actors {

HealthBoard::HealthBoard(const Clock& clock, partition::Cluster cluster, std::uint64_t steps_total)
    : clock_(clock), cluster_(std::move(cluster)) {
  health_.steps_total = steps_total;
}

void HealthBoard::note(const Event& event) {
  const std::lock_guard lock(mutex_);
  std::visit([this](const auto& each) { on(each); }, event);
}

void HealthBoard::stopping() {
  const std::lock_guard lock(mutex_);
  enter(SessionPhase::kEnding);
}

void HealthBoard::over(Outcome outcome) {
  const std::lock_guard lock(mutex_);
  enter(SessionPhase::kOver);
  health_.outcome = outcome;
  health_.members.clear();
}

Health HealthBoard::health() const {
  const std::lock_guard lock(mutex_);
  Health result = health_;
  if (last_step_at_) result.last_step_age = clock_.now() - *last_step_at_;
  return result;
}

void HealthBoard::on(const PlanInForce& plan) {
  std::set<HostId> hosts;
  for (const auto& stage : plan.plan.stages)
    for (const auto& share : stage.shares) hosts.insert(cluster_.host_of(share.device));
  health_.members.clear();
  for (const HostId host : hosts) health_.members.push_back(cluster_.hosts.at(host.index()).name);
  health_.steps_done = plan.first_step.value();
  enter(SessionPhase::kTraining);
}

void HealthBoard::on(const StepFinished& step) {
  health_.steps_done = step.step.value() + 1;
  health_.loss = step.loss;
  last_step_at_ = clock_.now();
}

void HealthBoard::on(const CheckpointSaved& saved) {
  health_.checkpoint = saved.folder;
}

void HealthBoard::on(const Incident& incident) {
  health_.incident = to_string(incident);
  std::erase(health_.members, incident.host);
  enter(incident.goes_on ? SessionPhase::kRegrouping : SessionPhase::kEnding);
}

void HealthBoard::enter(SessionPhase phase) {
  if (health_.phase >= SessionPhase::kEnding && phase < health_.phase) return;
  health_.phase = phase;
}

}  // namespace holmes::actors
