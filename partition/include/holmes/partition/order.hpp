#pragma once

// Schedule network-aware: an order of passes for each replica, generated for the delays and speeds
// of one cluster so that transfers hide behind computing, within the memory of the devices. Tried
// are the published schedules at every depth, and greedy orders under many rules; what the
// simulator finds fastest is kept, so that it is never slower than any of those that fit. The
// result is in the plan: Share::order.
//
// Related work: CrossPipe (2025) solves for such orders between data centres; Qi et al. 2023 split
// the backward pass; Narayanan et al. 2021 interleave chunks.

#include "holmes/partition/cost.hpp"
#include "holmes/partition/plan.hpp"

namespace holmes::partition {

/// Where payloads share links evenly (LinkSharing), replicas also get offsets, so that each in turn
/// has the link to itself, as Atlas (2024) does between data centres.
///
/// Gives `plan`, which must be valid but for its schedule, the schedule network-aware and its
/// orders. Chunks are tried where check_schedule() allows them. kInvalidArgument: absurd options.
Status order_passes(const Cluster& cluster, const ModelCost& model, const CostOptions& cost,
                    const OrderOptions& options, Plan& plan);

}  // namespace holmes::partition
