#pragma once

// How far a run is, as figures and as text: a pure function of the events seen. Time is the sum of
// the steps' durations; nothing here reads a clock or writes anywhere.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "holmes/actors/events.hpp"
#include "holmes/partition/cluster.hpp"

namespace holmes::launcher {

/// A loss curve in at most kPointsMax points: when they are full, neighbours are merged.
class LossCurve {
 public:
  static constexpr std::size_t kPointsMax = 48;
  void add(double loss);
  const std::vector<double>& points() const { return points_; }

 private:
  std::vector<double> points_;
  std::uint64_t steps_per_point_ = 1;
  std::uint64_t pending_count_ = 0;
  double pending_sum_ = 0;
};

struct NicRate {
  std::string name;  ///< "a0/ib0"
  double sent_per_s = 0;
  double received_per_s = 0;
};

struct Progress {
  std::uint64_t steps_total = 0;
  std::uint64_t steps_done = 0;
  bool any_step = false;
  double loss = 0;
  double gradient_norm = 0;
  double learning_rate = 0;
  /// Of the same recent steps, so that their product is the tokens of a step.
  double tokens_per_s = 0;
  double step_s = 0;
  bool any_validation = false;
  double validation_loss = 0;
  LossCurve curve;
  std::vector<NicRate> nics;
  bool any_rate = false;  ///< Some NIC's counters have been seen to grow.

  double left_s() const;
};

/// Follows the events of a session.
class ProgressTracker {
 public:
  ProgressTracker(std::uint64_t steps_total, partition::Cluster cluster);
  void on_event(const actors::Event& event);
  const Progress& progress() const { return progress_; }

 private:
  struct Counters {
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
  };
  void on_step(const actors::StepFinished& step);
  void on_traffic(const actors::StepFinished& step);

  /// Sums over recent steps; what is older counts for less and less.
  struct Recent {
    double time_s = 0;
    double steps = 0;
    double tokens = 0;
    std::map<std::string, std::pair<double, double>> bytes;  ///< Sent and received, by NIC.
    void fade(double factor);
  };

  partition::Cluster cluster_;
  Progress progress_;
  std::map<std::string, Counters> counters_;
  Recent recent_;
  std::uint64_t steps_seen_ = 0;
};

struct RenderOptions {
  int columns = 80;
  bool color = false;
  bool unicode = true;
};
/// The lines of the live display, each narrower than `columns`.
std::vector<std::string> render_live(const Progress& progress, const RenderOptions& options);
/// One line for places that are no terminal.
std::string render_line(const Progress& progress);

/// "1:02:03", "2:03", "3.4 s".
std::string human_duration(double duration_s);
/// "12.3 MB"; decimal, as networks count.
std::string human_bytes(double bytes);
/// One letter for each point, scaled to the lowest and highest.
std::string sparkline(const std::vector<double>& points, std::size_t width, bool unicode);

}  // namespace holmes::launcher
