// How much memory a Stage can come to hold: what its HostAgent reserves before the first step.

#include <algorithm>

#include "stage.hpp"

namespace holmes::actors {

/// Depth of the schedule and one more, for each direction.
std::size_t Stage::reservations_max(const Routes& routes) const {
  return 2 * (std::size_t{partition::in_flight_max(routes.plan(), spec_.stage, spec_.device)} + 1);
}

/// Micro-batches in flight, F of the schedule, bound all of it: each has its inputs and stashes
/// here, and its output or the gradient of its input in one place between here and the
/// neighbouring stage.
BufferDemand Stage::demand(const Routes& routes) const {
  const std::size_t in_flight = partition::in_flight_max(routes.plan(), spec_.stage, spec_.device);
  BufferDemand demand;
  for (const auto& layer : layers_) demand.add(layer->stash_bytes(), in_flight);
  // And those around the layer of a backward pass.
  demand.add(activation_bytes(), in_flight * (layers_.size() - 1) + 2);
  if (spec_.has_embedding || spec_.has_head)
    demand.add(std::size_t{spec_.shape.samples} * spec_.shape.tokens * sizeof(std::int32_t),
               2 * (in_flight + 1));
  return demand;
}

/// "And one" is a payload that has arrived while its sender still holds it.
BufferDemand Stage::payload_demand(const Routes& routes) const {
  const auto& plan = routes.plan();
  const std::size_t in_flight = partition::in_flight_max(plan, spec_.stage, spec_.device);
  std::size_t count = 0;
  if (!spec_.has_head) count += 2 * in_flight + 1;  // outputs of training and of validation
  if (!spec_.has_embedding) {
    std::size_t upstream = 0;
    for (const auto& share : plan.stages[spec_.stage.index() - 1].shares)
      upstream += partition::in_flight_max(plan, StageIndex(spec_.stage.value() - 1), share.device);
    count += std::min(upstream, plan.micro_batches(spec_.stage, spec_.device).size()) + 1;
    // In one pool, gradients on their way take the places of inputs that were given back.
    if (&resources_.payloads != &resources_.pool) count += in_flight + 2;
  }
  const bool reserves = !spec_.has_embedding || !spec_.has_head;
  if (reserves) count += reservations_max(routes) + in_flight + 1;
  BufferDemand demand;
  demand.add(activation_bytes(), count);
  return demand;
}

}  // namespace holmes::actors
