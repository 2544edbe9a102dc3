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
/// neighbouring stage. "And one" is a payload that has arrived while its sender still holds it.
BufferDemand Stage::demand(const Routes& routes) const {
  const auto& plan = routes.plan();
  const std::size_t in_flight = partition::in_flight_max(plan, spec_.stage, spec_.device);
  BufferDemand demand;
  for (const auto& layer : layers_) demand.add(layer->stash_bytes(), in_flight);

  std::size_t activations = in_flight * (layers_.size() - 1);
  if (!spec_.has_head) activations += 2 * in_flight + 1;  // outputs of training and of validation
  activations += 2;                                       // around the layer of a backward pass
  if (!spec_.has_embedding) {
    std::size_t upstream = 0;
    for (const auto& share : plan.stages[spec_.stage.index() - 1].shares)
      upstream += partition::in_flight_max(plan, StageIndex(spec_.stage.value() - 1), share.device);
    activations += std::min(upstream, plan.micro_batches(spec_.stage, spec_.device).size()) + 1;
  }
  const bool reserves = !spec_.has_embedding || !spec_.has_head;
  if (reserves) activations += reservations_max(routes) + in_flight + 1;
  demand.add(activation_bytes(), activations);

  if (spec_.has_embedding || spec_.has_head)
    demand.add(std::size_t{spec_.shape.samples} * spec_.shape.tokens * sizeof(std::int32_t),
               2 * (in_flight + 1));
  return demand;
}

}  // namespace holmes::actors
