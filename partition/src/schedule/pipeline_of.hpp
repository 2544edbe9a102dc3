#pragma once

// Pipelines of plans.

#include "holmes/partition/cost.hpp"
#include "schedule/pipeline.hpp"

namespace holmes::partition {

/// Passes of one chunk of a stage on a replica.
PassTimes pass_times(const Plan& plan, StageIndex stage, std::uint32_t chunk,
                     const LayerTimes& layers);

/// Stations and micro-batches only: every pass takes a second, payloads nothing, and everything
/// may be held.
Pipeline bare_pipeline(const Plan& plan);

/// With times, ways and what `options` and the devices' memory allow to be held.
Pipeline pipeline_of(const Plan& plan, const Cluster& cluster, const ModelCost& model,
                     const CostOptions& cost, const OrderOptions& options);

/// The orders that the plan carries.
Orders orders_of(const Plan& plan);
void put_orders(const Orders& orders, Plan& plan);

}  // namespace holmes::partition
