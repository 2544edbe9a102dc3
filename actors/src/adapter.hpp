#pragma once

// When a job should go on by another plan: what is known of the speed of its devices, and whether a
// better plan is worth the change. It plans and simulates nothing itself. Owned by the coordinator.
//
// Devices report how many times longer their passes took than the declared speed says. Of the last
// reports the median counts, so that a passing disturbance moves nothing. A device must have
// changed against the others, and a plan promise a gain at two looks in a row; a change that did
// not help is taken back, and the next look waits longer.

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "holmes/base/ids.hpp"
#include "holmes/base/units.hpp"
#include "holmes/partition/cluster.hpp"

namespace holmes::actors {

class Adapter {
 public:
  struct Options {
    double gain_min = 0.1;         ///< Of the time of a step.
    double change_min = 0.15;      ///< Of a device's speed against that of the others.
    std::size_t reports = 10;      ///< Of each device, from which its speed is known.
    std::size_t steps = 5;         ///< Between two looks.
    std::size_t steps_max = 1000;  ///< After changes that did not help.
  };
  explicit Adapter(Options options) : options_(options) {}

  /// Passes of `device` took `slowness` times as long as declared. What cannot be is ignored.
  void heard(DeviceId device, double slowness);
  void step_took(Duration time);
  /// A generation begins: what was heard before says nothing of it.
  void begin();

  /// Whether enough is known to look for a better plan of these devices.
  bool is_time_to_look(const std::vector<DeviceId>& devices) const;
  /// `declared` with its devices as fast as they were of late; those not heard of are off
  /// from `believed` as much as the others at the median.
  partition::Cluster measured(const partition::Cluster& declared,
                              const partition::Cluster& believed) const;

  /// Whether any device has become faster or slower than the others make one expect. All of them
  /// alike are not: that the declared speeds are wrong says nothing for another plan.
  bool differs(const partition::Cluster& measured, const partition::Cluster& believed) const;

  /// Whether steps of `then_s` instead of `now_s` are worth a change with so many steps to go.
  bool gains(double now_s, double then_s, std::uint64_t steps_left) const;
  /// The outcome of a look: whether it spoke for another plan. True if that is to be taken now.
  bool looked(bool in_favour);
  /// That plan is taken. Later has_failed() tells, once, that steps have become no shorter.
  void took_it();
  bool has_failed();
  /// Back to where it was.
  void took_it_back();

 private:
  double median_step_s() const;

  const Options options_;
  std::map<DeviceId, std::deque<double>> slowness_;
  std::deque<double> steps_s_;  // the last ones of this generation
  std::size_t steps_ = 0;       // of this generation
  std::size_t next_look_ = 0;
  std::size_t pause_ = 0;  // steps to wait after a change
  int looks_in_favour_ = 0;
  std::optional<double> before_s_;  // a step took so long before the change that is on trial
};

}  // namespace holmes::actors
