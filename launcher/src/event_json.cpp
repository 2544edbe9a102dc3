#include "event_json.hpp"

#include <nlohmann/json.hpp>

#include "holmes/partition/plan_json.hpp"

namespace holmes::launcher {
namespace {

using Json = nlohmann::ordered_json;

std::string line(const Json& json) {
  // Names and causes may hold any bytes; what is no UTF-8 is replaced.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json traffic_json(const actors::StepFinished& step, const partition::Cluster& cluster) {
  Json nics = Json::object();
  for (const auto& nic : step.traffic)
    nics[nic_name(nic, cluster)] = {{"bytes_sent", nic.bytes_sent},
                                    {"bytes_received", nic.bytes_received}};
  return nics;
}

Json step_json(const actors::StepFinished& step, const partition::Cluster& cluster) {
  const double step_s = seconds(step.duration);
  Json json{{"step", step.step.value()},
            {"loss", step.loss},
            {"gradient_norm", step.gradient_norm},
            {"learning_rate", step.learning_rate},
            {"tokens", step.tokens},
            {"tokens_per_s", step_s > 0 ? static_cast<double>(step.tokens) / step_s : 0.0},
            {"step_s", step_s}};
  json["nics"] = traffic_json(step, cluster);
  return json;
}

struct ToJson {
  const partition::Cluster& cluster;

  Json operator()(const actors::HostStarted& event) const {
    return {{"event", "host_started"}, {"host", event.name}, {"pid", event.pid}};
  }
  Json operator()(const actors::PlanInForce& event) const {
    Json json{{"event", "plan_in_force"},
              {"generation", event.generation.value()},
              {"first_step", event.first_step.value()}};
    if (!event.plan.empty()) json["plan"] = Json::parse(partition::to_json(event.plan, cluster));
    return json;
  }
  Json operator()(const actors::StepFinished& event) const {
    Json json{{"event", "step_finished"}};
    json.update(step_json(event, cluster));
    return json;
  }
  Json operator()(const actors::ValidationFinished& event) const {
    return {{"event", "validation_finished"}, {"step", event.step.value()}, {"loss", event.loss}};
  }
  Json operator()(const actors::CheckpointSaved& event) const {
    return {{"event", "checkpoint_saved"},
            {"step", event.step.value()},
            {"folder", event.folder.string()}};
  }
  Json operator()(const actors::Incident& event) const {
    Json json{{"event", "incident"},
              {"host", event.host},
              {"nic", event.nic},
              {"operation", event.operation},
              {"code", to_string(event.cause.code())},
              {"goes_on", event.goes_on},
              {"other_nics", event.other_nics},
              {"message", to_string(event)}};
    if (event.any_committed) json["last_committed"] = event.last_committed.value();
    return json;
  }
  Json operator()(const actors::Regrouped& event) const {
    return {{"event", "regrouped"},
            {"lost", event.lost},
            {"left", event.left},
            {"joined", event.joined},
            {"nics_lost", event.nics_lost},
            {"nics_back", event.nics_back},
            {"adapted", event.adapted},
            {"generation", event.generation.value()},
            {"first_step", event.first_step.value()},
            {"steps_lost", event.steps_lost},
            {"silent_s", seconds(event.silent)},
            {"agree_s", seconds(event.agree)},
            {"plan_s", seconds(event.plan)},
            {"move_s", seconds(event.move)},
            {"first_step_s", seconds(event.first)},
            {"moved_bytes", event.moved},
            {"message", to_string(event)}};
  }
};

}  // namespace

std::string nic_name(const actors::NicTraffic& nic, const partition::Cluster& cluster) {
  const bool known = nic.host.index() < cluster.hosts.size();
  const std::string host =
      known ? cluster.hosts[nic.host.index()].name : "host-" + std::to_string(nic.host.value());
  return host + "/" + nic.nic;
}

std::string event_json(const actors::Event& event, const partition::Cluster& cluster) {
  return line(std::visit(ToJson{cluster}, event));
}

std::string metrics_json(const actors::StepFinished& step, const double* validation_loss,
                         const partition::Cluster& cluster) {
  Json json = step_json(step, cluster);
  if (validation_loss != nullptr) json["validation_loss"] = *validation_loss;
  return line(json);
}

}  // namespace holmes::launcher
