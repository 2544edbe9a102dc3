#pragma once

// What the order of passes depends on, as flat numbers: replicas with the times of their passes and
// the micro-batches that they may hold, and what payloads between them pass. Made from a plan
// (pipeline_of.cpp), or by hand in tests.
//
// An order is a word of letters for each station (schedule.hpp): passes of one kind go through the
// station's micro-batches in ascending order, so that sums of gradients have the bits of any other
// schedule and a word is all there is to choose. PipelineRun plays words, or lets a rule write
// them, under the simulator's model of passes and transfers; collectives and updates are left to
// the simulator.

#include <cstdint>
#include <limits>
#include <queue>
#include <string>
#include <vector>

#include "holmes/partition/schedule.hpp"

namespace holmes::partition {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Seconds of the passes of one micro-batch through one chunk of a replica.
struct PassTimes {
  double forward_s = 0;
  double backward_s = 0;
  double input_s = 0;
  double weight_s = 0;
  double of(Pass pass) const;
};

/// A word for each station.
using Orders = std::vector<std::string>;

struct Pipeline {
  /// A replica of a stage.
  struct Station {
    std::uint32_t stage = 0;
    std::vector<PassTimes> chunks;
    std::uint32_t first = 0;  ///< Of its micro-batches, which are consecutive.
    std::uint32_t count = 0;
    std::uint32_t held_max = 0;  ///< Chunks of micro-batches with activations; at least 1.
  };
  /// What a payload passes: each channel is busy with one payload at a time.
  struct Way {
    struct Part {
      std::uint32_t channel = 0;
      double busy_s = 0;
    };
    std::vector<Part> parts;
    double latency_s = 0;
  };

  std::uint32_t stages = 0;
  std::uint32_t chunks = 1;
  std::uint32_t micro_batches = 0;
  bool overlapped = true;  ///< False: a station waits until what it sends is delivered.
  std::uint32_t channel_count = 0;
  std::vector<Station> stations;     ///< By stage, then micro-batches.
  std::vector<std::uint32_t> owner;  ///< Station of (stage, micro-batch).
  std::vector<Way> ways;
  /// Way from (stage, micro-batch) to the next stage's station, the last stage's to the first; and
  /// that to the stage before. Empty ways cost nothing.
  std::vector<std::uint32_t> forth;
  std::vector<std::uint32_t> back;

  std::uint32_t units(std::uint32_t station) const { return stations[station].count * chunks; }
  /// Micro-batch and chunk of the `index`th pass of a kind.
  struct Unit {
    std::uint32_t micro_batch = 0;
    std::uint32_t chunk = 0;
  };
  Unit unit(std::uint32_t station, bool forward, std::uint32_t index) const;
  /// Position of the forward of what the `index`th backward is of.
  std::uint32_t forward_of(std::uint32_t station, std::uint32_t index) const;
  /// Passes of all stations together, whole backwards.
  std::size_t pass_count() const;
};

class PipelineRun {
 public:
  explicit PipelineRun(const Pipeline& pipeline);

  /// What a station does next: `start_s` in the future is looked at again then; kNever: when
  /// something has been sent to it.
  struct Choice {
    Pass pass = Pass::kForward;
    double start_s = kNever;
  };

  /// When the last pass ends; kNever when it cannot or when that is later than `limit_s`.
  /// `choose(station, now_s)` is asked whenever a station is free.
  template <class Choose>
  double run(bool split, double limit_s, Choose&& choose);
  double play(const Orders& orders, double limit_s = kNever);
  bool split() const { return split_; }

  /// When the station's next pass of a kind can start; kNever: it is not known yet, or it has none.
  double ready_s(std::uint32_t station, Pass pass) const;
  std::uint32_t held(std::uint32_t station) const;
  /// Weight passes that it could run.
  std::uint32_t owed(std::uint32_t station) const;
  bool forwards_left(std::uint32_t station) const;
  const Orders& words() const { return words_; }

 private:
  struct State {
    std::uint32_t forwards = 0;
    std::uint32_t backwards = 0;
    std::uint32_t weights = 0;
    double free_s = 0;
    double left_s = 0;  ///< Of passes that have not started.
    bool busy = false;
  };
  struct Event {
    double at_s = 0;
    std::uint64_t number = 0;
    std::uint32_t station = 0;
    bool end = false;
    bool operator>(const Event& other) const {
      return at_s != other.at_s ? at_s > other.at_s : number > other.number;
    }
  };

  void reset(bool split);
  template <class Choose>
  void ask(std::uint32_t station, double now_s, Choose& choose);
  void start(std::uint32_t station, Pass pass, double now_s);
  /// Sends what the pass that ends makes; the station that gets it, or its own.
  std::uint32_t finish(std::uint32_t station, double now_s);
  double transfer(const Pipeline::Way& way, double at_s);
  void push(double at_s, std::uint32_t station, bool end) {
    queue_.push({at_s, pushed_++, station, end});
  }

  const Pipeline& pipeline_;
  bool split_ = false;
  double limit_s_ = kNever;
  double end_s_ = 0;
  bool late_ = false;
  std::vector<State> states_;
  std::vector<Pass> running_;
  std::vector<double> activations_s_;  // arrival, by place and micro-batch
  std::vector<double> gradients_s_;
  std::vector<double> channels_s_;  // free from then on
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
  std::uint64_t pushed_ = 0;
  Orders words_;
};

template <class Choose>
void PipelineRun::ask(std::uint32_t station, double now_s, Choose& choose) {
  const Choice choice = choose(station, now_s);
  if (choice.start_s == kNever) return;
  if (choice.start_s > now_s) {
    push(choice.start_s, station, false);
  } else {
    start(station, choice.pass, now_s);
  }
}

template <class Choose>
double PipelineRun::run(bool split, double limit_s, Choose&& choose) {
  reset(split);
  limit_s_ = limit_s;
  for (std::uint32_t i = 0; i < states_.size(); ++i) ask(i, 0, choose);
  while (!queue_.empty() && !late_) {
    const Event event = queue_.top();
    queue_.pop();
    State& state = states_[event.station];
    if (event.end) {
      const std::uint32_t receiver = finish(event.station, event.at_s);
      if (receiver != event.station && !states_[receiver].busy) ask(receiver, event.at_s, choose);
      if (state.free_s > event.at_s) {  // blocked by what it sends
        push(state.free_s, event.station, false);
        continue;
      }
    }
    if (!state.busy && state.free_s <= event.at_s) ask(event.station, event.at_s, choose);
  }
  if (late_) return kNever;
  for (std::uint32_t i = 0; i < states_.size(); ++i) {
    const State& state = states_[i];
    const std::uint32_t units = pipeline_.units(i);
    if (state.backwards < units || (split_ && state.weights < units)) return kNever;
  }
  return end_s_;
}

}  // namespace holmes::partition
