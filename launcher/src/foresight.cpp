#include "foresight.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "ablations.hpp"
#include "holmes/partition/search.hpp"
#include "simulate_report.hpp"

namespace holmes::launcher {
namespace {

constexpr std::size_t kStepsMin = 3;
// Of very long runs the first ones: a median needs no more.
constexpr std::size_t kStepsMax = 100'000;

std::string remedy_text(const partition::Remedy& remedy) {
  std::string text;
  for (const auto& setting : remedy.settings)
    text += (text.empty() ? "--set " : " --set ") + setting;
  return text + " (predicted " + step_text(remedy.step_s) + " a step)";
}

}  // namespace

Status check_fits(const actors::JobConfig& job) {
  const auto plan = actors::plan_of(job);
  if (!plan || !partition::check_runnable(*plan)) return {};
  const auto model = actors::model_cost(job);
  // What runs, whatever [cost] says of predictions.
  partition::CostOptions runtime;
  runtime.copies = job.resilience.on_loss == actors::OnLoss::kContinue;
  const Status fits = partition::check_host_memory(*plan, job.cluster, model, runtime);
  if (fits) return {};
  partition::SearchOptions options = search_options(job, {});
  options.cost = runtime;
  std::string message = fits.error().message();
  const auto remedies = partition::memory_remedies(job.cluster, model, job.train.shape, options);
  for (std::size_t i = 0; i < remedies.size(); ++i)
    message += (i == 0 ? "; what fits: " : ", or ") + remedy_text(remedies[i]);
  if (remedies.empty())
    message +=
        "; no other split, micro-batch, number of stages or placement that was tried fits: add "
        "hosts or memory, or make the model smaller";
  return Error(fits.error().code(), message);
}

void StepTimesTracker::on_event(const actors::Event& event) {
  if (const auto* in_force = std::get_if<actors::PlanInForce>(&event)) {
    if (in_force->plan.empty()) return;
    plan_ = in_force->plan;
    durations_s_.clear();
    first_ = true;
  } else if (const auto* step = std::get_if<actors::StepFinished>(&event)) {
    // The first one counts from the start of the plan, with all that had to be made ready.
    if (!first_ && durations_s_.size() < kStepsMax) durations_s_.push_back(seconds(step->duration));
    first_ = false;
  }
}

std::optional<StepTimes> StepTimesTracker::times() const {
  if (plan_.empty() || durations_s_.size() < kStepsMin) return std::nullopt;
  const auto model = actors::model_cost(job_);
  if (!partition::validate(plan_, job_.cluster, model.blocks, model.tied_head)) return std::nullopt;
  partition::SimulateOptions how;
  how.cost = job_.cost;
  const auto predicted = partition::simulate(plan_, job_.cluster, model, how);
  if (!predicted) return std::nullopt;
  auto sorted = durations_s_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return StepTimes{predicted->step_s, *middle, sorted.size(), partition::calibrated(job_.cost)};
}

std::string step_times_text(const StepTimes& times) {
  return fmt::format("{} predicted, {} measured (median of {} steps): x{:.2f}{}",
                     step_text(times.predicted_s), step_text(times.measured_s), times.steps,
                     times.ratio(),
                     times.calibrated ? "" : "; not calibrated, from declared speeds");
}

}  // namespace holmes::launcher
