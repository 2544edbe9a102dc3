#pragma once

// Counts what a session tells, for Prometheus: base units, counters that end in _total. Any thread.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "holmes/actors/events.hpp"
#include "holmes/actors/health.hpp"
#include "holmes/partition/cluster.hpp"

namespace service {

class Metrics {
 public:
  explicit Metrics(holmes::partition::Cluster cluster) : cluster_(std::move(cluster)) {}

  void note(const holmes::actors::Event& event);
  /// In Prometheus's text format, version 0.0.4.
  std::string text(const holmes::actors::Health& health) const;

 private:
  void on(const holmes::actors::StepFinished& step);

  const holmes::partition::Cluster cluster_;
  mutable std::mutex mutex_;
  std::uint64_t steps_ = 0;
  std::uint64_t tokens_ = 0;
  double step_seconds_ = 0;
  std::uint64_t checkpoints_ = 0;
  std::uint64_t incidents_ = 0;
  std::map<std::pair<std::string, std::string>, holmes::actors::NicTraffic> traffic_;
};

}  // namespace service
