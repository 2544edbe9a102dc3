// Training goes on by another plan when devices compute faster or slower than the plan in force
// takes for granted, and steps become shorter by it. Nobody is lost and nothing is in haste: like
// hosts that come and leave, it waits for a step of the generation in force.

#include <algorithm>
#include <array>
#include <cstdio>

#include "coordinator.hpp"
#include "holmes/partition/simulate.hpp"
#include "replan.hpp"

namespace holmes::actors {

namespace {

/// Of a step; nothing where the plan does not fit.
std::optional<double> predicted_s(const partition::Plan& plan, const JobConfig& job) {
  partition::SimulateOptions how;
  how.cost = job.cost;
  const auto simulated = partition::simulate(plan, job.cluster, model_cost(job), how);
  return simulated ? std::optional(simulated->step_s) : std::nullopt;
}

struct Choice {
  JobConfig job;
  partition::Plan plan;
  double step_s = 0;
};

std::optional<Choice> choice_of(JobConfig job, partition::Strategy strategy,
                                const partition::JobShape& shape, const std::vector<bool>& hosts) {
  job.parallel.strategy = strategy;
  auto plan = plan_for(job, shape, hosts);
  if (!plan) return std::nullopt;
  const auto step_s = predicted_s(*plan, job);
  if (!step_s) return std::nullopt;
  return Choice{std::move(job), *std::move(plan), *step_s};
}

std::string with_digits(const char* format, double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

/// "host b1 computes at 0.33 of its declared speed, the others at 0.98": the device that differs
/// most from the median of all.
std::string straggler(const partition::Cluster& declared, const partition::Cluster& measured) {
  std::vector<double> speeds;
  std::vector<std::size_t> hosts;
  for (std::size_t host = 0; host < declared.hosts.size(); ++host)
    for (std::size_t i = 0; i < declared.hosts[host].devices.size(); ++i) {
      speeds.push_back(measured.hosts[host].devices[i].tflops /
                       declared.hosts[host].devices[i].tflops);
      hosts.push_back(host);
    }
  auto sorted = speeds;
  std::sort(sorted.begin(), sorted.end());
  const double median = sorted[sorted.size() / 2];
  const auto differs = [median](double speed) { return std::max(speed / median, median / speed); };
  std::size_t most = 0;
  for (std::size_t i = 0; i < speeds.size(); ++i)
    if (differs(speeds[i]) > differs(speeds[most])) most = i;
  return "host " + declared.hosts[hosts[most]].name + " computes at " +
         with_digits("%.2g", speeds[most]) + " of its declared speed, at the median hosts do at " +
         with_digits("%.2g", median);
}

}  // namespace

void Coordinator::adapt() {
  if (!spec_.job.resilience.adapt || !may_change_members()) return;
  if (adapter_.has_failed()) return take_back();
  if (!adapter_.is_time_to_look(plan_.members())) return;
  auto as_measured = job_;
  as_measured.cluster = adapter_.measured(spec_.job.cluster, job_.cluster);
  auto better = better_plan(as_measured);
  if (!adapter_.looked(better.has_value())) return;
  regrouping_ = Regrouping{{}, clock().now()};
  regrouping_->report.adapted = std::move(better->why);
  before_ = std::exchange(job_, std::move(better->job));
  adapter_.took_it();
  regroup();
}

/// The job's own strategy with the speeds that were measured, or what the search finds. With all
/// speeds as they were declared it is the plan that was asked for, whatever is said of others.
std::optional<Coordinator::BetterPlan> Coordinator::better_plan(const JobConfig& measured) const {
  if (!adapter_.differs(measured.cluster, job_.cluster)) return std::nullopt;
  const auto& declared = spec_.job;
  const bool is_as_declared = !adapter_.differs(measured.cluster, declared.cluster);
  const auto hosts = hosts_to_plan_for();
  auto best = choice_of(measured, declared.parallel.strategy, plan_.job, hosts);
  if (!is_as_declared) {
    auto found = choice_of(measured, partition::Strategy::kAuto, plan_.job, hosts);
    if (found && (!best || found->step_s < best->step_s)) best = std::move(found);
  }
  const auto now_s = predicted_s(plan_, measured);
  if (!best || !now_s || best->plan == plan_) return std::nullopt;
  const auto steps_left = declared.train.steps - last_committed_->value() - 1;
  if (!is_as_declared && !adapter_.gains(*now_s, best->step_s, steps_left)) return std::nullopt;
  const std::string why =
      is_as_declared ? "all hosts compute as fast as declared, against each other"
                     : straggler(declared.cluster, measured.cluster) + "; a step should take " +
                           with_digits("%.3g", 100 * best->step_s / *now_s) + " % of the time";
  return BetterPlan{std::move(best->job), why};
}

/// Steps have become no shorter: the plan before was better after all.
void Coordinator::take_back() {
  if (!before_) return;
  for (std::size_t host = 0; host < job_.cluster.hosts.size(); ++host)
    before_->cluster.hosts[host].nics = job_.cluster.hosts[host].nics;  // as they are today
  job_ = *std::exchange(before_, std::nullopt);
  regrouping_ = Regrouping{{}, clock().now()};
  regrouping_->report.adapted = "the one before, as steps have become no shorter";
  regroup();
}

/// Whoever comes or goes changes what steps take: nothing can be said of the change any more.
void Coordinator::stop_trial() {
  before_.reset();
  adapter_.took_it_back();
}

}  // namespace holmes::actors
