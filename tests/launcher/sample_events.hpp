#pragma once

// Events and a cluster as a session would report them.

#include "holmes/actors/events.hpp"
#include "holmes/partition/plan.hpp"

namespace holmes::launcher {

/// Hosts a0 and b0, each with one device and a NIC on one Ethernet.
inline partition::Cluster two_hosts() {
  partition::Cluster cluster;
  cluster.fabrics.push_back({"ethernet", partition::NicKind::kEthernet, 1.0, 50.0});
  for (const char* name : {"a0", "b0"}) {
    partition::Host host;
    host.name = name;
    host.cluster = std::string(name).substr(0, 1);
    host.devices.emplace_back();
    host.nics.push_back({"eth0", FabricId(0), 1.0, 50.0});
    cluster.hosts.push_back(host);
  }
  return cluster;
}

/// Two stages of one block on the two hosts.
inline partition::Plan two_stages() {
  partition::ModelCost cost;
  cost.blocks = 2;
  cost.block_flops = 1e6;
  cost.block_parameters = 1000;
  cost.edge_bytes = 1000;
  partition::PlanOptions options;
  options.pipeline = 2;
  return partition::plan(two_hosts(), cost, {4, 1, 1}, options).value();
}

inline actors::PlanInForce plan_from(std::uint64_t first_step) {
  return {Generation(1), Step(first_step), two_stages()};
}

inline actors::StepFinished step_finished(std::uint64_t step, double loss,
                                          double duration_s = 0.5) {
  actors::StepFinished event;
  event.step = Step(step);
  event.loss = loss;
  event.gradient_norm = 0.5;
  event.learning_rate = 1e-3;
  event.duration = from_seconds(duration_s);
  event.tokens = 1000;
  event.traffic = {{HostId(0), "eth0", (step + 1) * 1'000'000, (step + 1) * 500'000}};
  return event;
}

inline actors::Incident incident() {
  return {"b0", "", "step 12", Step(11), true, Error(ErrorCode::kClosed, "connection closed")};
}

inline actors::Incident lost_host() {
  auto event = incident();
  event.goes_on = true;
  return event;
}

inline actors::Regrouped regrouped() {
  using std::chrono::milliseconds;
  actors::Regrouped event;
  event.lost = {"b0"};
  event.generation = Generation(2);
  event.first_step = Step(12);
  event.silent = milliseconds(50);
  event.agree = milliseconds(2);
  event.plan = milliseconds(4);
  event.move = milliseconds(30);
  event.first = milliseconds(100);
  event.moved = 4096;
  return event;
}

}  // namespace holmes::launcher
