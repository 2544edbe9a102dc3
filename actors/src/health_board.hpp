#pragma once

// What a session knows of itself, kept up to date by its own events. Written on the session's loop,
// read from any thread, hence the lock.

#include <mutex>

#include "holmes/actors/events.hpp"
#include "holmes/actors/health.hpp"
#include "holmes/base/clock.hpp"
#include "holmes/partition/cluster.hpp"

namespace holmes::actors {

class HealthBoard {
 public:
  /// The clock must outlive the board.
  HealthBoard(const Clock& clock, partition::Cluster cluster, std::uint64_t steps_total);

  void note(const Event& event);
  /// Somebody asked the session to stop.
  void stopping();
  void over(Outcome outcome);
  Health health() const;

 private:
  void on(const HostStarted&) {}
  void on(const PlanInForce& plan);
  void on(const StepFinished& step);
  void on(const ValidationFinished&) {}
  void on(const CheckpointSaved& saved);
  void on(const Incident& incident);
  void on(const Regrouped&) {}
  /// Phases go one way: what is ending is never said to train again.
  void enter(SessionPhase phase);

  const Clock& clock_;
  const partition::Cluster cluster_;
  mutable std::mutex mutex_;
  Health health_;
  std::optional<TimePoint> last_step_at_;
};

}  // namespace holmes::actors
