#include "schedule/pipeline.hpp"

#include <algorithm>

#include "holmes/base/assert.hpp"

namespace holmes::partition {

double PassTimes::of(Pass pass) const {
  switch (pass) {
    case Pass::kForward:
      return forward_s;
    case Pass::kBackward:
      return backward_s;
    case Pass::kBackwardInput:
      return input_s;
    case Pass::kBackwardWeight:
      return weight_s;
  }
  assertion_failed("known pass", __FILE__, __LINE__, "unknown pass");
}

/// With chunks: rounds of as many micro-batches as stages, each round once through every chunk,
/// backwards from the last one.
Pipeline::Unit Pipeline::unit(std::uint32_t station, bool forward, std::uint32_t index) const {
  const std::uint32_t first = stations[station].first;
  if (chunks == 1) return {first + index, 0};
  const std::uint32_t round = index / (stages * chunks);
  const std::uint32_t chunk = index % (stages * chunks) / stages;
  return {first + round * stages + index % stages, forward ? chunk : chunks - 1 - chunk};
}

std::uint32_t Pipeline::forward_of(std::uint32_t station, std::uint32_t index) const {
  if (chunks == 1) return index;
  const Unit of = unit(station, false, index);
  const std::uint32_t position = of.micro_batch - stations[station].first;
  return position / stages * stages * chunks + of.chunk * stages + position % stages;
}

std::size_t Pipeline::pass_count() const {
  return std::size_t{2} * chunks * stages * micro_batches;
}

PipelineRun::PipelineRun(const Pipeline& pipeline)
    : pipeline_(pipeline),
      states_(pipeline.stations.size()),
      running_(pipeline.stations.size()),
      words_(pipeline.stations.size()) {}

void PipelineRun::reset(bool split) {
  split_ = split;
  end_s_ = 0;
  late_ = false;
  pushed_ = 0;
  queue_ = {};
  const std::size_t places =
      std::size_t{pipeline_.stages} * pipeline_.chunks * pipeline_.micro_batches;
  activations_s_.assign(places, kNever);
  gradients_s_.assign(places, kNever);
  std::fill_n(activations_s_.begin(), pipeline_.micro_batches, 0);
  std::fill_n(gradients_s_.end() - pipeline_.micro_batches, pipeline_.micro_batches, 0);
  channels_s_.assign(pipeline_.channel_count, 0);
  for (std::uint32_t i = 0; i < states_.size(); ++i) {
    const Pipeline::Station& station = pipeline_.stations[i];
    states_[i] = {};
    for (const PassTimes& times : station.chunks) {
      const double backward_s = split ? times.input_s + times.weight_s : times.backward_s;
      states_[i].left_s += station.count * (times.forward_s + backward_s);
    }
    words_[i].clear();
  }
}

std::uint32_t PipelineRun::held(std::uint32_t station) const {
  const State& state = states_[station];
  return state.forwards - (split_ ? state.weights : state.backwards);
}

std::uint32_t PipelineRun::owed(std::uint32_t station) const {
  const State& state = states_[station];
  return split_ ? state.backwards - state.weights : 0;
}

bool PipelineRun::forwards_left(std::uint32_t station) const {
  return states_[station].forwards < pipeline_.units(station);
}

double PipelineRun::ready_s(std::uint32_t station, Pass pass) const {
  const State& state = states_[station];
  const std::uint32_t stage = pipeline_.stations[station].stage;
  const auto arrival_s = [&](const std::vector<double>& of, Pipeline::Unit unit) {
    const std::size_t place = std::size_t{unit.chunk} * pipeline_.stages + stage;
    return of[place * pipeline_.micro_batches + unit.micro_batch];
  };
  switch (pass) {
    case Pass::kForward:
      if (!forwards_left(station)) return kNever;
      if (held(station) >= pipeline_.stations[station].held_max) return kNever;
      return arrival_s(activations_s_, pipeline_.unit(station, true, state.forwards));
    case Pass::kBackward:
    case Pass::kBackwardInput:
      if (split_ == (pass == Pass::kBackward)) return kNever;
      if (state.backwards == pipeline_.units(station)) return kNever;
      if (pipeline_.forward_of(station, state.backwards) >= state.forwards) return kNever;
      return arrival_s(gradients_s_, pipeline_.unit(station, false, state.backwards));
    case Pass::kBackwardWeight:
      return owed(station) > 0 ? 0 : kNever;
  }
  return kNever;
}

void PipelineRun::start(std::uint32_t station, Pass pass, double now_s) {
  State& state = states_[station];
  HOLMES_ASSERT(!state.busy && state.free_s <= now_s, "one pass at a time");
  const bool forward = pass == Pass::kForward;
  std::uint32_t& count = forward                         ? state.forwards
                         : pass == Pass::kBackwardWeight ? state.weights
                                                         : state.backwards;
  const Pipeline::Unit unit = pipeline_.unit(station, forward, count);
  const double seconds = pipeline_.stations[station].chunks[unit.chunk].of(pass);
  late_ = late_ || now_s + state.left_s > limit_s_ * (1 + 1e-12);
  ++count;
  state.left_s -= seconds;
  state.free_s = now_s + seconds;
  state.busy = true;
  running_[station] = pass;
  words_[station] += letter_of(pass);
  end_s_ = std::max(end_s_, state.free_s);
  push(state.free_s, station, true);
}

double PipelineRun::transfer(const Pipeline::Way& way, double at_s) {
  double end_s = at_s;
  for (const Pipeline::Way::Part& part : way.parts) {
    double& free_s = channels_s_[part.channel];
    free_s = std::max(free_s, at_s) + part.busy_s;
    end_s = std::max(end_s, free_s);
  }
  return end_s + way.latency_s;
}

std::uint32_t PipelineRun::finish(std::uint32_t station, double now_s) {
  State& state = states_[station];
  state.busy = false;
  const Pass pass = running_[station];
  if (pass == Pass::kBackwardWeight) return station;
  const bool forward = pass == Pass::kForward;
  const auto unit =
      pipeline_.unit(station, forward, (forward ? state.forwards : state.backwards) - 1);
  const std::uint32_t stage = pipeline_.stations[station].stage;
  const std::uint32_t place = unit.chunk * pipeline_.stages + stage;
  if (forward ? place + 1 == pipeline_.stages * pipeline_.chunks : place == 0) return station;
  const std::uint32_t next = forward ? place + 1 : place - 1;
  const auto& ways = forward ? pipeline_.forth : pipeline_.back;
  const std::size_t from = std::size_t{stage} * pipeline_.micro_batches + unit.micro_batch;
  const double arrives_s = transfer(pipeline_.ways[ways[from]], now_s);
  auto& arrivals = forward ? activations_s_ : gradients_s_;
  arrivals[std::size_t{next} * pipeline_.micro_batches + unit.micro_batch] = arrives_s;
  if (!pipeline_.overlapped) state.free_s = std::max(state.free_s, arrives_s);
  return pipeline_
      .owner[std::size_t{next % pipeline_.stages} * pipeline_.micro_batches + unit.micro_batch];
}

double PipelineRun::play(const Orders& orders, double limit_s) {
  const bool split = std::any_of(orders.begin(), orders.end(), [](const std::string& word) {
    return word.find(letter_of(Pass::kBackwardWeight)) != std::string::npos;
  });
  return run(split, limit_s, [&](std::uint32_t station, double now_s) -> Choice {
    const std::string& word = orders[station];
    const std::size_t at = words_[station].size();
    if (at == word.size()) return {};
    for (const Pass pass :
         {Pass::kForward, Pass::kBackward, Pass::kBackwardInput, Pass::kBackwardWeight}) {
      if (letter_of(pass) == word[at]) return {pass, std::max(now_s, ready_s(station, pass))};
    }
    return {};
  });
}

}  // namespace holmes::partition
