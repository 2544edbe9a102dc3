#include <algorithm>

#include <nlohmann/json.hpp>

#include "holmes/partition/nccl.hpp"
#include "holmes/partition/plan_json.hpp"
#include "plan_text.hpp"

namespace holmes::partition {

namespace {

using Json = nlohmann::ordered_json;

Json ids(const std::vector<DeviceId>& devices) {
  Json array = Json::array();
  for (const DeviceId device : devices) array.push_back(device.value());
  return array;
}

void add_paths(const Cluster& cluster, const std::vector<FabricId>& paths, Json& object) {
  Json names = Json::array();
  for (const FabricId path : paths) names.push_back(cluster.fabrics[path.index()].name);
  object["fabric"] = names.empty() ? Json(nullptr) : names.front();
  object["paths"] = std::move(names);
}

Json stage_json(const StagePlan& stage) {
  Json devices = Json::array();
  Json shares = Json::array();
  for (const Share& share : stage.shares) {
    for (const DeviceId device : share.devices()) devices.push_back(device.value());
    shares.push_back({{"device", share.device.value()},
                      {"devices", ids(share.devices())},
                      {"leaves", {share.leaves.first, share.leaves.last}}});
    if (!share.order.empty()) shares.back()["order"] = share.order;
    if (share.offset_us > 0) shares.back()["offset_us"] = share.offset_us;
  }
  return {{"layers", {stage.first_block, stage.last_block}},
          {"devices", std::move(devices)},
          {"shares", std::move(shares)}};
}

Json nccl_json(const Group& group, const Cluster& cluster) {
  const auto settings = nccl_settings(cluster, group);
  if (!settings) return nullptr;
  Json nics = Json::object();
  for (const auto& [id, list] : settings->nics) {
    const Host& host = cluster.hosts[id.index()];
    Json names = Json::array();
    for (const NicId nic : list) names.push_back(host.nics[nic.index()].name);
    nics[host.name] = std::move(names);
  }
  return {{"net_name", settings->net_name.empty() ? Json(nullptr) : Json(settings->net_name)},
          {"nics", std::move(nics)}};
}

Json group_json(const Group& group, const Cluster& cluster) {
  Json object = {{"kind", to_string(group.kind)}, {"devices", ids(group.devices)}};
  add_paths(cluster, group.paths, object);
  object["nccl"] = nccl_json(group, cluster);
  object["reason"] = group.reason;
  return object;
}

Json edge_json(const Edge& edge, const Cluster& cluster) {
  Json object = {{"from_stage", edge.from_stage.value()}, {"to_stage", edge.to_stage.value()}};
  add_paths(cluster, edge.paths, object);
  object["reason"] = edge.reason;
  return object;
}

Json devices_json(const Cluster& cluster) {
  Json devices = Json::array();
  std::uint32_t rank = 0;
  for (const Host& host : cluster.hosts) {
    for (const Device& device : host.devices) {
      devices.push_back({{"device", rank++},
                         {"host", host.name},
                         {"cluster", host.cluster},
                         {"kind", device.kind}});
    }
  }
  return devices;
}

}  // namespace

std::string to_json(const Plan& plan, const Cluster& cluster) {
  Json object = {{"strategy", to_string(plan.strategy)},
                 {"schedule", to_string(plan.schedule)},
                 {"tensor", plan.tensor},
                 {"pipeline", plan.stages.size()},
                 {"data", data_degree(plan)},
                 {"reduction_leaves", plan.job.reduction_leaves},
                 {"micro_batches", plan.job.micro_batch_count()}};
  for (const char* key : {"stages", "groups", "edges"}) object[key] = Json::array();
  for (const StagePlan& stage : plan.stages) object["stages"].push_back(stage_json(stage));
  for (const Group& group : plan.groups) object["groups"].push_back(group_json(group, cluster));
  for (const Edge& edge : plan.edges) object["edges"].push_back(edge_json(edge, cluster));
  object["devices"] = devices_json(cluster);
  object["unused"] = Json::array();
  for (const UnusedDevice& unused : unused_devices(plan, cluster)) {
    object["unused"].push_back({{"device", unused.device.value()}, {"reason", unused.reason}});
  }
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace holmes::partition
