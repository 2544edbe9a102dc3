#pragma once

// metrics.jsonl of a run folder: one line for each step, appended as steps finish.
//
// The line of a step that is validated waits for its validation, so that it can carry the figure;
// no other line waits. A figure that comes at another time gets a line of its own, and so does a
// host that is lost and the recovery from it ("event"). Threads: one at a time.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>

#include "holmes/actors/events.hpp"
#include "holmes/partition/cluster.hpp"

namespace holmes::launcher {

class MetricsWriter {
 public:
  struct Options {
    std::filesystem::path file;
    std::uint64_t steps = 0;           ///< Of the job: a validation follows the last one.
    std::uint64_t validate_every = 0;  ///< 0: only after the last step.
    partition::Cluster cluster;        ///< Names of the NICs.
  };
  explicit MetricsWriter(Options options) : options_(std::move(options)) {}
  ~MetricsWriter() { flush(); }
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  /// Must see all events in order. Errors of the disk are returned once, then nothing is written.
  Status on_event(const actors::Event& event);

 private:
  Status begin(Step first_step);
  void on_step(const actors::StepFinished& step);
  void on_validation(const actors::ValidationFinished& validation);
  bool validated(Step step) const;
  void flush();
  void write(const std::string& line);
  Status check();

  const Options options_;
  std::ofstream out_;
  std::optional<actors::StepFinished> waiting_;
  bool failed_ = false;
};

/// Drops the lines of steps from `first_step` on and what follows them, and a last line that was
/// not written whole. A file that does not exist is well.
Status cut_metrics(const std::filesystem::path& file, Step first_step);

}  // namespace holmes::launcher
