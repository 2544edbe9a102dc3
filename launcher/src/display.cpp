#include "display.hpp"

#include <fmt/format.h>

#include "event_json.hpp"
#include "printable.hpp"

namespace holmes::launcher {
namespace {

std::string announcement(const actors::Event& event) {
  if (const auto* host = std::get_if<actors::HostStarted>(&event))
    return fmt::format("host {} started (process {})", host->name, host->pid);
  if (const auto* plan = std::get_if<actors::PlanInForce>(&event)) {
    if (plan->plan.empty()) return {};
    return fmt::format("plan {} in force from step {}: {} stage{}", plan->generation.value(),
                       plan->first_step.value(), plan->plan.stages.size(),
                       plan->plan.stages.size() == 1 ? "" : "s");
  }
  if (const auto* validation = std::get_if<actors::ValidationFinished>(&event))
    return fmt::format("validation after {} steps: {:.4f} nats per token", validation->step.value(),
                       validation->loss);
  if (const auto* checkpoint = std::get_if<actors::CheckpointSaved>(&event))
    return fmt::format("checkpoint of {} steps: {}", checkpoint->step.value(),
                       checkpoint->folder.string());
  return {};
}

}  // namespace

Display::Display(Console& console, const Clock& clock, DisplayOptions options)
    : console_(console),
      clock_(clock),
      options_(std::move(options)),
      tracker_(options_.steps_total, options_.cluster) {}

void Display::on_event(const actors::Event& event) {
  if (const auto* incident = std::get_if<actors::Incident>(&event))
    console_.log("holmes: " + printable(to_string(*incident) + log_of(incident->host)));
  if (const auto* regrouped = std::get_if<actors::Regrouped>(&event))
    console_.log("holmes: " + printable(to_string(*regrouped)));
  if (options_.mode == DisplayMode::kJson) {
    console_.print(event_json(event, options_.cluster));
    return;
  }
  tracker_.on_event(event);
  announce(event);
  advance(event);
}

std::string Display::log_of(const std::string& host) const {
  if (host.empty() || !options_.log_file) return {};
  const auto file = options_.log_file(host);
  return file.empty() ? "" : "; its log: " + file.string();
}

void Display::announce(const actors::Event& event) {
  const std::string text = announcement(event);
  if (!text.empty()) console_.print(printable(text));
}

void Display::advance(const actors::Event& event) {
  if (!std::holds_alternative<actors::StepFinished>(event)) return;
  const auto& progress = tracker_.progress();
  const bool last = progress.steps_done == progress.steps_total;
  if (options_.mode == DisplayMode::kLive) {
    if (due(options_.redraw_every) || last) draw();
  } else if (due(options_.line_every) || last) {
    console_.print_progress(render_line(progress));
  }
}

void Display::draw() {
  constexpr int kColumnsUnknown = 80;
  const int columns = console_.columns();
  console_.show(render_live(tracker_.progress(), {columns > 0 ? columns : kColumnsUnknown,
                                                  options_.color, options_.unicode}));
}

void Display::end() {
  if (options_.mode != DisplayMode::kLive || !tracker_.progress().any_step) return;
  draw();
  console_.leave();
}

bool Display::due(Duration every) {
  const TimePoint now = clock_.now();
  if (shown_ && now - shown_at_ < every) return false;
  shown_ = true;
  shown_at_ = now;
  return true;
}

}  // namespace holmes::launcher
