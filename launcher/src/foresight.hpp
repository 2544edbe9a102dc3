#pragma once

// What the simulator says of a job that is to be trained: whether it fits, before anything starts,
// and how long its steps should take, to set beside what was measured.

#include <optional>
#include <string>
#include <vector>

#include "holmes/actors/events.hpp"
#include "holmes/actors/job_config.hpp"

namespace holmes::launcher {

/// kInvalidArgument when the plan needs more memory than a host has: by how much, for what, and the
/// nearest settings that fit. A job that cannot be planned is left to who starts it.
Status check_fits(const actors::JobConfig& job);

struct StepTimes {
  double predicted_s = 0;
  double measured_s = 0;  ///< The median.
  std::size_t steps = 0;  ///< That it is the median of.
  bool calibrated = false;
  double ratio() const { return measured_s / predicted_s; }
};
/// "0.257 s predicted, 0.31 s measured (median of 99 steps): x1.21; ...".
std::string step_times_text(const StepTimes& times);

/// Follows the events of a session; of several plans the last one counts.
class StepTimesTracker {
 public:
  explicit StepTimesTracker(const actors::JobConfig& job) : job_(job) {}
  void on_event(const actors::Event& event);
  /// Nothing before a few steps were made by the plan in force.
  std::optional<StepTimes> times() const;

 private:
  const actors::JobConfig& job_;
  partition::Plan plan_;
  std::vector<double> durations_s_;
  bool first_ = true;
};

}  // namespace holmes::launcher
