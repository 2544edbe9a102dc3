#include "progress.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "event_json.hpp"

namespace holmes::launcher {
namespace {

constexpr double kWindowSeconds = 2.0;  // rates forget what is older than about this

}  // namespace

void LossCurve::add(double loss) {
  if (!std::isfinite(loss)) return;
  pending_sum_ += loss;
  if (++pending_count_ < steps_per_point_) return;
  points_.push_back(pending_sum_ / static_cast<double>(pending_count_));
  pending_sum_ = 0;
  pending_count_ = 0;
  if (points_.size() < kPointsMax) return;
  for (std::size_t i = 0; i < kPointsMax / 2; ++i)
    points_[i] = (points_[2 * i] + points_[2 * i + 1]) / 2;
  points_.resize(kPointsMax / 2);
  steps_per_point_ *= 2;
}

double Progress::left_s() const {
  return static_cast<double>(steps_total - std::min(steps_done, steps_total)) * step_s;
}

ProgressTracker::ProgressTracker(std::uint64_t steps_total, partition::Cluster cluster)
    : cluster_(std::move(cluster)) {
  progress_.steps_total = steps_total;
}

void ProgressTracker::on_event(const actors::Event& event) {
  if (const auto* plan = std::get_if<actors::PlanInForce>(&event)) {
    if (!plan->plan.empty()) progress_.steps_done = plan->first_step.value();
  } else if (const auto* step = std::get_if<actors::StepFinished>(&event)) {
    on_step(*step);
  } else if (const auto* validation = std::get_if<actors::ValidationFinished>(&event)) {
    progress_.any_validation = true;
    progress_.validation_loss = validation->loss;
  }
}

void ProgressTracker::Recent::fade(double factor) {
  time_s *= factor;
  steps *= factor;
  tokens *= factor;
  for (auto& [name, sums] : bytes) {
    sums.first *= factor;
    sums.second *= factor;
  }
}

void ProgressTracker::on_step(const actors::StepFinished& step) {
  const double step_s = seconds(step.duration);
  progress_.any_step = true;
  progress_.steps_done = step.step.value() + 1;
  progress_.loss = step.loss;
  progress_.gradient_norm = step.gradient_norm;
  progress_.learning_rate = step.learning_rate;
  progress_.curve.add(step.loss);
  if (step_s <= 0) return;
  // The first step warms caches and connections: it stands for the rate only while it is alone.
  recent_.fade(++steps_seen_ == 2 ? 0 : std::exp(-step_s / kWindowSeconds));
  recent_.time_s += step_s;
  recent_.steps += 1;
  recent_.tokens += static_cast<double>(step.tokens);
  progress_.step_s = recent_.time_s / recent_.steps;
  progress_.tokens_per_s = recent_.tokens / recent_.time_s;
  on_traffic(step);
}

void ProgressTracker::on_traffic(const actors::StepFinished& step) {
  for (const auto& nic : step.traffic) {
    const std::string name = nic_name(nic, cluster_);
    const auto [counters, fresh] = counters_.try_emplace(name);
    auto& rates = progress_.nics;
    if (fresh) rates.push_back({name, 0, 0});
    const auto rate = std::find_if(rates.begin(), rates.end(),
                                   [&](const NicRate& other) { return other.name == name; });
    // Counters start anew with a process; the first sight of a NIC says nothing about its rate.
    const auto grown = [](std::uint64_t now, std::uint64_t before) {
      return now >= before ? static_cast<double>(now - before) : 0.0;
    };
    auto& [sent, received] = recent_.bytes[name];
    if (!fresh) {
      sent += grown(nic.bytes_sent, counters->second.sent);
      received += grown(nic.bytes_received, counters->second.received);
    }
    rate->sent_per_s = sent / recent_.time_s;
    rate->received_per_s = received / recent_.time_s;
    progress_.any_rate = progress_.any_rate || rate->sent_per_s > 0;
    counters->second = {nic.bytes_sent, nic.bytes_received};
  }
}

std::string human_duration(double duration_s) {
  if (!std::isfinite(duration_s) || duration_s < 0) return "?";
  if (duration_s < 10) return fmt::format("{:.1f} s", duration_s);
  const auto total = static_cast<std::uint64_t>(std::llround(duration_s));
  if (total < 3600) return fmt::format("{}:{:02}", total / 60, total % 60);
  return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
}

std::string human_bytes(double bytes) {
  constexpr std::array kUnits{"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes, unit == 0 || bytes >= 99.95 ? 0 : 1, kUnits[unit]);
}

std::string sparkline(const std::vector<double>& points, std::size_t width, bool unicode) {
  constexpr std::array kBlocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::array kLetters{"_", "_", ".", ".", "-", "-", "'", "'"};
  const auto first =
      points.size() > width ? points.end() - static_cast<std::ptrdiff_t>(width) : points.begin();
  if (first == points.end()) return {};
  const auto [low, high] = std::minmax_element(first, points.end());
  const double range = *high - *low;
  std::string line;
  for (auto point = first; point != points.end(); ++point) {
    const double share = range > 0 ? (*point - *low) / range : 0;
    const auto level = static_cast<std::size_t>(std::lround(share * (kBlocks.size() - 1)));
    line += unicode ? kBlocks[level] : kLetters[level];
  }
  return line;
}

std::string render_line(const Progress& progress) {
  std::string line = fmt::format("step {}/{}  loss {:.4f}", progress.steps_done,
                                 progress.steps_total, progress.loss);
  if (progress.any_validation) line += fmt::format("  validation {:.4f}", progress.validation_loss);
  line += fmt::format("  {:.0f} tokens/s  {:.3f} s/step  left {}", progress.tokens_per_s,
                      progress.step_s, human_duration(progress.left_s()));
  double sent_per_s = 0;
  for (const auto& nic : progress.nics) sent_per_s += nic.sent_per_s;
  if (progress.any_rate) line += fmt::format("  all NICs send {}/s", human_bytes(sent_per_s));
  return line;
}

}  // namespace holmes::launcher
