#include "simulate_report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "holmes/partition/reach.hpp"
#include "progress.hpp"

namespace holmes::launcher {
namespace {

using partition::ChannelUse;
using partition::DeviceTime;

constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr std::size_t kRowsMax = 24;

std::string channel_name(const ChannelUse& use, const partition::Cluster& cluster) {
  switch (use.kind) {
    case ChannelUse::Kind::kSend:
    case ChannelUse::Kind::kReceive:
      return fmt::format("{} {}", cluster.hosts[use.host.index()].name,
                         cluster.fabrics[use.fabric.index()].name);
    case ChannelUse::Kind::kTrunk:
      return "trunk of " + cluster.fabrics[use.fabric.index()].name;
    case ChannelUse::Kind::kLink:
      break;
  }
  const auto& link = cluster.links[use.link];
  return fmt::format("link {} - {}", link.from, link.to);
}

std::string_view channel_way(const ChannelUse& use) {
  if (use.kind == ChannelUse::Kind::kSend) return "out";
  if (use.kind == ChannelUse::Kind::kReceive) return "in";
  return use.forth ? "forth" : "back";
}

double total(const DeviceTime& time) {
  return time.forward_s + time.backward_s + time.optimizer_s + time.transfer_s + time.bubble_s +
         time.collective_s;
}

/// All devices, or where they are many the two of each stage that compute most and least of it.
std::vector<const DeviceTime*> shown(const std::vector<DeviceTime>& all) {
  std::vector<const DeviceTime*> rows;
  const auto busy = [](const DeviceTime& t) { return t.forward_s + t.backward_s; };
  for (std::size_t first = 0; first < all.size();) {
    std::size_t end = first;
    while (end < all.size() && all[end].stage == all[first].stage) ++end;
    if (all.size() <= kRowsMax) {
      for (std::size_t i = first; i < end; ++i) rows.push_back(&all[i]);
    } else {
      const auto [least, most] = std::minmax_element(
          all.begin() + static_cast<std::ptrdiff_t>(first),
          all.begin() + static_cast<std::ptrdiff_t>(end),
          [&](const DeviceTime& a, const DeviceTime& b) { return busy(a) < busy(b); });
      rows.push_back(&*most);
      if (least != most && busy(*least) < busy(*most) * (1 - 1e-6)) rows.push_back(&*least);
    }
    first = end;
  }
  return rows;
}

std::string devices_text(const partition::Segment& segment) {
  const auto& times = segment.simulated.devices;
  const auto hosts = partition::hosts_by_device(segment.cluster);
  const auto rows = shown(times);
  std::string text = fmt::format(
      "where the time of a step goes, in % of it\n"
      "  {:<18} {:>5} {:>8} {:>9} {:>10} {:>9} {:>7} {:>10}\n",
      "device", "stage", "forward", "backward", "optimizer", "transfer", "bubble", "gradients");
  for (const DeviceTime* time : rows) {
    const double whole = std::max(total(*time), 1e-30) / 100;
    const auto& host = segment.cluster.hosts[hosts[time->device.index()].index()].name;
    text +=
        fmt::format("  {:<18} {:>5} {:>8.1f} {:>9.1f} {:>10.1f} {:>9.1f} {:>7.1f} {:>10.1f}\n",
                    fmt::format("{} ({})", time->device.value(), host), time->stage.value(),
                    time->forward_s / whole, time->backward_s / whole, time->optimizer_s / whole,
                    time->transfer_s / whole, time->bubble_s / whole, time->collective_s / whole);
  }
  if (rows.size() < times.size())
    text += fmt::format(
        "  (of {} replicas those of each stage that compute most and least; --json has all)\n",
        times.size());
  return text;
}

std::string channels_text(const partition::Segment& segment) {
  auto channels = segment.simulated.channels;
  if (channels.empty()) return "nothing crosses a network\n";
  std::stable_sort(channels.begin(), channels.end(),
                   [](const ChannelUse& a, const ChannelUse& b) { return a.busy_s > b.busy_s; });
  std::string text = fmt::format("what a step sends\n  {:<32} {:>6} {:>11} {:>8}\n", "over", "way",
                                 "bytes", "busy %");
  for (std::size_t i = 0; i < std::min(channels.size(), kRowsMax); ++i)
    text +=
        fmt::format("  {:<32} {:>6} {:>11} {:>8.1f}\n", channel_name(channels[i], segment.cluster),
                    channel_way(channels[i]), human_bytes(channels[i].bytes),
                    channels[i].busy_s / segment.simulated.step_s * 100);
  if (channels.size() > kRowsMax)
    text += fmt::format("  (the busiest of {}; --json has all)\n", channels.size());
  return text;
}

std::string stages_text(const partition::Segment& segment) {
  std::string text;
  for (std::size_t s = 0; s < segment.planned.plan.stages.size() && s < kRowsMax; ++s) {
    const auto& stage = segment.planned.plan.stages[s];
    text += fmt::format("  stage {}: blocks {} to {}, {} replica{}\n", s, stage.first_block,
                        stage.last_block, stage.shares.size(), stage.shares.size() == 1 ? "" : "s");
  }
  return text;
}

/// Runs of steps that take equally long are one line.
std::string steps_text(const partition::Timeline& timeline) {
  const auto times = timeline.step_times_s();
  std::string text = "steps over time\n";
  std::size_t lines = 0;
  for (std::size_t first = 0; first < times.size();) {
    std::size_t end = first + 1;
    while (end < times.size() && std::abs(times[end] - times[first]) < 1e-4 * times[first]) ++end;
    const std::string which = end == first + 1 ? fmt::format("step {}", first)
                                               : fmt::format("steps {} to {}", first, end - 1);
    if (++lines <= 2 * kRowsMax)
      text += fmt::format("  {:<20} {:>12} each, until {:.4g} s\n", which, step_text(times[first]),
                          timeline.commits_s[end - 1]);
    first = end;
  }
  if (lines > 2 * kRowsMax) text += fmt::format("  (and {} more lines)\n", lines - 2 * kRowsMax);
  return text;
}

std::string events_text(const partition::Timeline& timeline, const partition::ModelCost& model) {
  std::string text;
  for (std::size_t i = 0; i < timeline.segments.size(); ++i) {
    const auto& segment = timeline.segments[i];
    if (i > 0)
      text += fmt::format("planned anew for {} hosts from {:.4g} s on: {} a step\n",
                          segment.cluster.hosts.size(), segment.start_s,
                          step_text(segment.simulated.step_s)) +
              stages_text(segment);
    if (!segment.ended_by.empty())
      text += fmt::format("{}: {} of a step are lost and redone\n", segment.ended_by,
                          step_text(segment.lost_s));
    const auto tightest =
        partition::tightest(segment.planned.plan, segment.cluster, model, segment.planned.cost);
    if (tightest.missing() > 0)
      text += fmt::format("memory is short: device {} lacks {:.3g} GiB\n", tightest.device.value(),
                          tightest.missing() / kGib);
  }
  if (!timeline.stopped.empty()) text += "training cannot go on: " + timeline.stopped + "\n";
  return text;
}

}  // namespace

std::string step_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.4g} us", seconds * 1e6);
  return seconds < 0.1 ? fmt::format("{:.4g} ms", seconds * 1e3) : fmt::format("{:.4g} s", seconds);
}

std::string calibration_note(const partition::CostOptions& cost) {
  if (partition::calibrated(cost)) return "";
  return "not calibrated: computed from declared speeds ([cost] of the job file has the constants, "
         "holmes simulate --fit finds them)";
}

std::string simulation_text(const actors::JobConfig& job, const partition::ModelCost& model,
                            const partition::Timeline& timeline) {
  const auto& last = timeline.segments.back();
  const auto& figures = last.simulated;
  const auto& plan = last.planned.plan;
  std::string text =
      fmt::format("{}: {}, {} stage{}, {}, {} micro-batches of {}\n", job.run.name,
                  to_string(plan.strategy), plan.stages.size(), plan.stages.size() == 1 ? "" : "s",
                  to_string(plan.schedule), plan.job.micro_batch_count(), plan.job.micro_batch);
  text += stages_text(timeline.segments.front());
  text += fmt::format(
      "{} a step, {:.4g} samples/s, {:.4g} TFLOPS a device (96-style; {:.4g} of needed FLOPs)\n",
      step_text(figures.step_s), figures.samples_per_s, figures.tflops_per_device,
      figures.model_tflops_per_device);
  if (const auto note = calibration_note(job.cost); !note.empty()) text += note + "\n";
  text += "\n" + devices_text(last) + "\n" + channels_text(last);
  const bool eventful = timeline.commits_s.size() > 2 || timeline.segments.size() > 1;
  if (eventful) text += "\n" + steps_text(timeline);
  return text + events_text(timeline, model);
}

}  // namespace holmes::launcher
