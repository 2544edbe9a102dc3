#pragma once

// Events of a session as JSON: one line each for `holmes train --json`, and the line of
// metrics.jsonl. Numbers have as many digits as it takes to read back the same value.

#include <string>

#include "holmes/actors/events.hpp"
#include "holmes/partition/cluster.hpp"

namespace holmes::launcher {

/// {"event": "step_finished", ...} in one line without its newline.
std::string event_json(const actors::Event& event, const partition::Cluster& cluster);

/// The line of a step, without newline. `validation_loss` is left out where it is null.
std::string metrics_json(const actors::StepFinished& step, const double* validation_loss,
                         const partition::Cluster& cluster);

/// "a0/ib0", for people and as a key.
std::string nic_name(const actors::NicTraffic& nic, const partition::Cluster& cluster);

}  // namespace holmes::launcher
