#pragma once

// What `holmes simulate` prints: pure texts out of a simulation.

#include <string>

#include "holmes/actors/job_config.hpp"
#include "holmes/partition/timeline.hpp"

namespace holmes::launcher {

std::string simulation_text(const actors::JobConfig& job, const partition::ModelCost& model,
                            const partition::Timeline& timeline);
/// Keys: strategy, schedule, step_s, samples_per_s, tflops_per_device, model_tflops_per_device,
/// memory_gib_per_device, calibrated, stages[], devices[] {device, host, stage, forward_s, ...},
/// channels[] {kind, name, bytes, busy_s}, steps[] {end_s, step_s}, segments[], stopped.
std::string simulation_json(const actors::JobConfig& job, const partition::ModelCost& model,
                            const partition::Timeline& timeline);

/// "0.257 s".
std::string step_text(double seconds);
/// What is to be known of a prediction's constants; nothing when they were calibrated.
std::string calibration_note(const partition::CostOptions& cost);

}  // namespace holmes::launcher
