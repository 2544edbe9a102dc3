#pragma once

// The JSON of a plan, for people's tools (plan.json, `holmes plan --json`). Written only: between
// processes plans travel in the wire format.

#include <string>

#include "holmes/partition/plan.hpp"

namespace holmes::partition {

/// Keys: strategy, schedule, tensor, pipeline, data, reduction_leaves, micro_batches,
/// stages[] {layers: [first, last], devices[], shares[] {device, devices[], leaves: [first,
/// last]}}, groups[] {kind, devices[], fabric, paths[], nccl {net_name, nics {host: []}}, reason},
/// edges[] {from_stage, to_stage, fabric, paths[], reason}, devices[] {device, host, cluster,
/// kind}, unused[] {device, reason}. Devices are ranks; fabrics are names, null where all is on one
/// host. `data` is the largest degree of any stage. The plan must be valid for the cluster.
std::string to_json(const Plan& plan, const Cluster& cluster);

}  // namespace holmes::partition
