// Passes of the schedules, and the messages between stages.

#include <algorithm>

#include "holmes/base/assert.hpp"
#include "simulate/engine.hpp"

namespace holmes::partition {
namespace {

constexpr double kGigabitBytes = 1e9 / 8;
constexpr double kMicro = 1e-6;

bool adds_weights(const ScheduledPass& pass) {
  return pass.pass == Pass::kBackward || pass.pass == Pass::kBackwardWeight;
}

}  // namespace

/// Position in the pipeline that a micro-batch goes through once: all stages, chunk by chunk.
std::uint32_t Engine::place(const Worker& worker, const ScheduledPass& pass) const {
  return pass.chunk * stage_count_ + worker.time.stage.value();
}

double Engine::duration(const Worker& worker, const ScheduledPass& pass) const {
  return worker.chunks[pass.chunk].times.of(pass.pass);
}

/// The payload that a pass starts from; null when it needs none.
Engine::Message* Engine::input(const Worker& worker, const ScheduledPass& pass) {
  const std::uint32_t at = place(worker, pass);
  const std::size_t index = std::size_t{at} * micro_batches_ + pass.micro_batch.index();
  if (pass.pass == Pass::kForward) return at == 0 ? nullptr : &activations_[index];
  if (pass.pass == Pass::kBackwardWeight) return nullptr;
  return at + 1 == stage_count_ * plan_.chunks ? nullptr : &gradients_[index];
}

void Engine::try_start(std::uint32_t index) {
  Worker& worker = workers_[index];
  worker.waiting = true;
  if (!worker.open || worker.position == worker.program.size()) return;
  const ScheduledPass& pass = worker.program[worker.position];
  double start_s = worker.free_s;
  if (pass.pass == Pass::kForward) start_s = std::max(start_s, worker.chunks[pass.chunk].gate_s);
  if (worker.position == 0) {
    start_s = std::max(start_s, (commits_s_.empty() ? 0 : commits_s_.back()) + worker.offset_s);
  }
  if (const Message* message = input(worker, pass)) {
    if (message->arrives_s < 0) return;
    start_s = std::max(start_s, message->arrives_s);
  }
  worker.waiting = false;
  account_wait(worker, pass, start_s);
  start(worker, index, start_s);
}

void Engine::start(Worker& worker, std::uint32_t index, double start_s) {
  const ScheduledPass& pass = worker.program[worker.position];
  const double seconds = duration(worker, pass);
  const double end_s =
      worker.profile.parts.empty() ? start_s + seconds : worker.profile.finish(start_s, seconds);
  (pass.pass == Pass::kForward ? worker.time.forward_s : worker.time.backward_s) += end_s - start_s;
  worker.free_s = end_s;
  if (options_.record) {
    record({static_cast<SimulatedEvent::Kind>(pass.pass), step_, worker.time.stage, worker.replica,
            pass.micro_batch.value(), pass.chunk, start_s, end_s});
  }
  push(end_s, Event::Kind::kPassEnd, index);
  if (adds_weights(pass) && --worker.weights_left[pass.chunk] == 0) {
    gradients_ready(worker, pass, end_s);
  }
}

/// Splits the time since the device was free into waiting for parameters, for another stage to
/// compute, and for a payload on its way.
void Engine::account_wait(Worker& worker, const ScheduledPass& pass, double start_s) {
  double from_s = worker.free_s;
  if (pass.pass == Pass::kForward) {
    const double gate_s = std::min(worker.chunks[pass.chunk].gate_s, start_s);
    if (gate_s > from_s) {
      worker.time.collective_s += gate_s - from_s;
      from_s = gate_s;
    }
  }
  const Message* message = input(worker, pass);
  if (message == nullptr || start_s <= from_s) return;
  const double sent_s = std::clamp(message->sent_s, from_s, start_s);
  worker.time.bubble_s += sent_s - from_s;
  worker.time.transfer_s += start_s - sent_s;
}

void Engine::end_pass(std::uint32_t index, double at_s) {
  Worker& worker = workers_[index];
  const ScheduledPass pass = worker.program[worker.position];
  const std::uint32_t at = place(worker, pass);
  const bool forward = pass.pass == Pass::kForward;
  const bool sends =
      forward ? at + 1 < stage_count_ * plan_.chunks : pass.pass != Pass::kBackwardWeight && at > 0;
  ++worker.position;
  if (sends) {
    const double sent_s = send(worker, pass, forward, at_s);
    if (!options_.cost.overlapped_transfers && sent_s >= 0) {
      worker.time.transfer_s += std::max(0.0, sent_s - worker.free_s);
      worker.free_s = std::max(worker.free_s, sent_s);
    }
    const std::uint32_t next = forward ? at + 1 : at - 1;
    const std::uint32_t receiver = owners_[next % stage_count_][plan_.leaf_of(pass.micro_batch)];
    if (receiver != index && workers_[receiver].waiting) try_start(receiver);
  }
  try_start(index);
}

/// Returns when the payload has been delivered; negative: it is not known yet.
double Engine::send(const Worker& from, const ScheduledPass& pass, bool forward, double at_s) {
  const std::uint32_t at = place(from, pass);
  const std::uint32_t next = forward ? at + 1 : at - 1;
  const std::uint32_t next_stage = next % stage_count_;
  Payload payload{forward,
                  std::size_t{next} * micro_batches_ + pass.micro_batch.index(),
                  owners_[next_stage][plan_.leaf_of(pass.micro_batch)],
                  from.time.stage,
                  from.replica,
                  pass.micro_batch.value(),
                  pass.chunk,
                  at_s,
                  0};
  const Worker& to = workers_[payload.receiver];
  double arrives_s = at_s;
  if (to.host == from.host) {
    if (&to != &from) {
      arrives_s += edge_bytes_ / (options_.cost.local_gbit_s * kGigabitBytes) +
                   options_.cost.local_latency_us * kMicro;
    }
  } else {
    const std::uint32_t lower = std::min(from.time.stage.value(), next_stage);
    const bool neighbours = std::max(from.time.stage.value(), next_stage) == lower + 1;
    const auto& paths = neighbours ? edge_paths_[lower] : common_;  // from the last to the first
    const Channels::Way& way = channels_.way_on(from.host, to.host, paths);
    if (options_.cost.sharing == LinkSharing::kEvenly) {
      payload.latency_s = way.latency_s;
      begin_flow(way, payload, at_s);
      return -1;
    }
    arrives_s = channels_.transfer(way, at_s, edge_bytes_);
  }
  deliver(payload, arrives_s);
  return arrives_s;
}

void Engine::deliver(const Payload& payload, double arrives_s) {
  auto& messages = payload.forward ? activations_ : gradients_;
  messages[payload.message] = {arrives_s, payload.sent_s};
  if (!options_.record) return;
  record({payload.forward ? SimulatedEvent::Kind::kActivation : SimulatedEvent::Kind::kGradient,
          step_, payload.stage, payload.replica, payload.micro_batch, payload.chunk, payload.sent_s,
          arrives_s});
}

void Engine::begin_flow(const Channels::Way& way, const Payload& payload, double at_s) {
  std::vector<ChannelId> passed = way.shared;
  passed.insert(passed.end(), {way.send, way.receive});
  std::vector<double> bytes_s;
  for (const ChannelId channel : passed) {
    channels_.count(channel, edge_bytes_);
    bytes_s.push_back(channels_.bytes_s(channel));
  }
  ends_.clear();
  const Flows::Id flow = flows_.begin(at_s, edge_bytes_, passed, bytes_s, ends_);
  if (flowing_.size() <= flow) flowing_.resize(flow + 1);
  flowing_[flow] = payload;
  for (const auto& end : ends_) push(end.at_s, Event::Kind::kFlow, end.flow, end.version);
}

void Engine::end_flow(const Event& event) {
  ends_.clear();
  if (!flows_.finish({event.index, event.bucket, event.at_s}, ends_)) return;
  for (const auto& end : ends_) push(end.at_s, Event::Kind::kFlow, end.flow, end.version);
  const Payload& payload = flowing_[event.index];
  deliver(payload, event.at_s + payload.latency_s);
  if (workers_[payload.receiver].waiting) try_start(payload.receiver);
}

/// The last pass that adds to a chunk's gradients has its end: each layer's are ready when the
/// layers behind it are done; without overlap, all of them when the device's last pass ends.
void Engine::gradients_ready(Worker& worker, const ScheduledPass& pass, double end_s) {
  const std::uint32_t index = worker.time.stage.value();
  Stage& stage = stages_[index];
  const bool overlapped = options_.cost.optimizer == OptimizerKind::kOverlapped;
  const bool all = std::all_of(worker.weights_left.begin(), worker.weights_left.end(),
                               [](std::uint32_t left) { return left == 0; });
  if (!overlapped && !all) return;
  const LayerTimes& t = worker.layers;
  for (std::uint32_t i = 0; i < stage.buckets.size(); ++i) {
    Bucket& bucket = stage.buckets[i];
    if (overlapped && bucket.chunk != pass.chunk) continue;
    double ready_s = end_s;
    if (overlapped && pass.pass == Pass::kBackward) {
      ready_s -= bucket.blocks_before * t.block_backward_s;
      if (bucket.embedding_before) ready_s -= t.embedding_forward_s * t.backward_ratio;
    }
    bucket.ready_s = std::max(bucket.ready_s, ready_s);
    if (++bucket.ready_count == stage.worker_count) {
      push(bucket.ready_s, Event::Kind::kReduce, index, i);
    }
  }
}

}  // namespace holmes::partition
