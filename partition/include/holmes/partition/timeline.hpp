#pragma once

// Training over a stretch of time in which things change: a link, fabric or host slows down, a host
// dies. Speed changes go into one simulation; at a death the step in progress is lost, and what is
// left is planned anew and goes on. Pure; the simulator (simulate.hpp) does the work.
//
// It is not the runtime's recovery: how long that takes is an assumption that is passed in, and
// moving state is not charged.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "holmes/partition/search.hpp"

namespace holmes::partition {

/// A change of speed, or (dies) the death of the host `speed.index` at `speed.at_s`.
struct Change {
  SpeedChange speed;
  bool dies = false;
};
/// "fabric NAME at 40 s to 0.3", "link FROM TO at 2 min to 0.5", "host NAME at 1.5 s to 0.8",
/// "host NAME at 60 s dies". kInvalidArgument: what is wrong, and the nearest name.
Result<Change> parse_change(std::string_view text, const Cluster& cluster);

struct TimelineOptions {
  SearchOptions search;     ///< Strategy and costs, of every plan on the way.
  std::uint32_t steps = 2;  ///< Committed ones, over all segments.
  std::vector<Change> changes = {};
  double recovery_s = 3;  ///< From a death to the first pass of the next plan.
  bool record = false;
};

/// The time in which one plan was in force.
struct Segment {
  Cluster cluster;  ///< Without the hosts that are dead.
  Searched planned;
  Simulation simulated;  ///< Its times count from `start_s`.
  double start_s = 0;
  std::uint32_t steps = 0;    ///< That were committed.
  std::string ended_by = {};  ///< Empty: it ran to the end. "host a1 died at 60 s".
  double lost_s = 0;          ///< Of the step in progress at the end, which is redone.
};

struct Timeline {
  std::vector<Segment> segments;
  std::vector<double> commits_s;  ///< Of all steps.
  std::string stopped = {};       ///< Not empty: why it could not go on to the last step.
  /// Seconds of each step, the time of a recovery counted where it fell.
  std::vector<double> step_times_s() const;
};

/// kInvalidArgument: nothing can be planned to begin with, or absurd options.
Result<Timeline> run_timeline(const Cluster& cluster, const ModelCost& model, const JobShape& job,
                              const TimelineOptions& options);

}  // namespace holmes::partition
