// The JSON of `holmes simulate`.

#include <nlohmann/json.hpp>

#include "holmes/partition/reach.hpp"
#include "simulate_report.hpp"

namespace holmes::launcher {
namespace {

using Json = nlohmann::ordered_json;
using partition::ChannelUse;

constexpr double kGib = 1024.0 * 1024 * 1024;

Json stages_json(const partition::Plan& plan) {
  Json stages = Json::array();
  for (const auto& stage : plan.stages) {
    Json devices = Json::array();
    for (const auto& share : stage.shares)
      for (const DeviceId device : share.devices()) devices.push_back(device.value());
    stages.push_back({{"layers", {stage.first_block, stage.last_block}}, {"devices", devices}});
  }
  return stages;
}

Json devices_json(const partition::Segment& segment) {
  const auto hosts = partition::hosts_by_device(segment.cluster);
  Json devices = Json::array();
  for (const auto& time : segment.simulated.devices)
    devices.push_back({{"device", time.device.value()},
                       {"host", segment.cluster.hosts[hosts[time.device.index()].index()].name},
                       {"stage", time.stage.value()},
                       {"forward_s", time.forward_s},
                       {"backward_s", time.backward_s},
                       {"optimizer_s", time.optimizer_s},
                       {"transfer_s", time.transfer_s},
                       {"bubble_s", time.bubble_s},
                       {"collective_s", time.collective_s}});
  return devices;
}

Json channels_json(const partition::Segment& segment) {
  constexpr const char* kKinds[] = {"send", "receive", "trunk", "link"};
  const auto& cluster = segment.cluster;
  Json channels = Json::array();
  for (const auto& use : segment.simulated.channels) {
    Json channel{{"kind", kKinds[static_cast<std::size_t>(use.kind)]}};
    if (use.kind == ChannelUse::Kind::kLink)
      channel["link"] = {cluster.links[use.link].from, cluster.links[use.link].to};
    else
      channel["fabric"] = cluster.fabrics[use.fabric.index()].name;
    if (use.kind == ChannelUse::Kind::kSend || use.kind == ChannelUse::Kind::kReceive)
      channel["host"] = cluster.hosts[use.host.index()].name;
    else
      channel["direction"] = use.forth ? "forth" : "back";
    channel["bytes"] = use.bytes;
    channel["busy_s"] = use.busy_s;
    channels.push_back(std::move(channel));
  }
  return channels;
}

Json segments_json(const partition::Timeline& timeline) {
  Json segments = Json::array();
  for (const auto& segment : timeline.segments) {
    Json json{{"start_s", segment.start_s},
              {"hosts", segment.cluster.hosts.size()},
              {"steps", segment.steps},
              {"step_s", segment.simulated.step_s},
              {"stages", stages_json(segment.planned.plan)}};
    if (!segment.ended_by.empty()) {
      json["ended_by"] = segment.ended_by;
      json["lost_s"] = segment.lost_s;
    }
    segments.push_back(std::move(json));
  }
  return segments;
}

}  // namespace

std::string simulation_json(const actors::JobConfig& job, const partition::ModelCost& model,
                            const partition::Timeline& timeline) {
  const auto& last = timeline.segments.back();
  const auto& plan = last.planned.plan;
  const auto tightest = partition::tightest(plan, last.cluster, model, last.planned.cost);
  Json steps = Json::array();
  const auto times = timeline.step_times_s();
  for (std::size_t i = 0; i < times.size(); ++i)
    steps.push_back({{"end_s", timeline.commits_s[i]}, {"step_s", times[i]}});
  Json json{{"strategy", to_string(plan.strategy)},
            {"schedule", to_string(plan.schedule)},
            {"step_s", last.simulated.step_s},
            {"samples_per_s", last.simulated.samples_per_s},
            {"tflops_per_device", last.simulated.tflops_per_device},
            {"model_tflops_per_device", last.simulated.model_tflops_per_device},
            {"memory_gib_per_device", tightest.use.total() / kGib},
            {"memory_missing_gib", std::max(0.0, tightest.missing() / kGib)},
            {"calibrated", partition::calibrated(job.cost)},
            {"stages", stages_json(plan)},
            {"devices", devices_json(last)},
            {"channels", channels_json(last)},
            {"steps", steps},
            {"segments", segments_json(timeline)}};
  if (!timeline.stopped.empty()) json["stopped"] = timeline.stopped;
  return json.dump(2) + "\n";
}

}  // namespace holmes::launcher
