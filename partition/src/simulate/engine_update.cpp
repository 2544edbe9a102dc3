// The end of a step: gradients are reduced, all members vote, shards are updated and gathered.

#include <algorithm>
#include <cmath>

#include "holmes/base/assert.hpp"
#include "simulate/engine.hpp"

namespace holmes::partition {
namespace {

constexpr double kGigabitBytes = 1e9 / 8;
constexpr double kGigabyte = 1e9;
constexpr double kMicro = 1e-6;
constexpr double kVoteFanOut = 8;
/// AdamW reads gradient, both moments and the parameter, and writes the last three, in fp32.
constexpr double kUpdateBytes = 28;

}  // namespace

/// One reduce-scatter or all-gather of `bytes` among the replicas of a stage.
double Engine::collective(const Stage& stage, double bytes, double at_s, bool gather) {
  const double n = stage.worker_count;
  if (n <= 1) return at_s;
  const bool ring = options_.cost.collective == Collective::kRing;
  // Inside a host: what a device gets from the others there.
  const double inside = ring ? (n - 1) / n : (stage.shares_max - 1) / n;
  double end_s = at_s + options_.cost.local_latency_us * kMicro +
                 bytes * inside / (options_.cost.local_gbit_s * kGigabitBytes * plan_.tensor);
  if (stage.hosts.size() == 1) return end_s;
  const Channels::Way& way =
      channels_.way_on(stage.hosts[0].host, stage.hosts[1].host, stage.paths);
  const double latency_s = way.latency_s * (ring ? n - 1 : 1);
  // Every channel of the group is on the fabric of the first path that joins its first two hosts.
  FabricId fabric;
  for (const FabricId path : stage.paths) {
    if (channels_.way(stage.hosts[0].host, stage.hosts[1].host, path) == &way) fabric = path;
  }
  for (const HostShare& of : stage.hosts) {
    double out = bytes * (n - 1) / n;
    double in = out;
    if (!ring) {
      out = bytes * (gather ? of.shares : of.subtrees) * (n - of.shares) / n;
      in = bytes * (gather ? n - of.shares : stage.subtrees - of.subtrees) * of.shares / n;
    }
    end_s = std::max(
        {end_s, channels_.serve(channels_.nic(of.host, fabric, true), at_s, out) + latency_s,
         channels_.serve(channels_.nic(of.host, fabric, false), at_s, in) + latency_s});
  }
  return std::max(end_s, across_clusters(stage, bytes, at_s, latency_s));
}

/// Trunks and links between the clusters of a stage carry what crosses them.
double Engine::across_clusters(const Stage& stage, double bytes, double at_s, double latency_s) {
  struct Side {
    HostId host;
    std::string_view cluster;
    double shares = 0;
  };
  std::vector<Side> sides;
  for (const HostShare& of : stage.hosts) {
    const std::string_view cluster = cluster_.hosts[of.host.index()].cluster;
    const auto side = std::find_if(sides.begin(), sides.end(),
                                   [&](const Side& s) { return s.cluster == cluster; });
    if (side == sides.end()) {
      sides.push_back({of.host, cluster, of.shares});
    } else {
      side->shares += of.shares;
    }
  }
  double end_s = at_s;
  const double n = stage.worker_count;
  const bool ring = options_.cost.collective == Collective::kRing;
  for (std::size_t i = 0; i < sides.size() && sides.size() > 1; ++i) {
    for (std::size_t j = 0; j < sides.size(); ++j) {
      if (i == j || (ring && j != (i + 1) % sides.size())) continue;
      const double crossing =
          ring ? bytes * (n - 1) / n : bytes * sides[i].shares * sides[j].shares / n;
      const auto& way = channels_.way_on(sides[i].host, sides[j].host, stage.paths);
      for (const ChannelId shared : way.shared) {
        end_s = std::max(end_s, channels_.serve(shared, at_s, crossing) + latency_s);
      }
    }
  }
  return end_s;
}

void Engine::reduce(std::uint32_t index, std::uint32_t i, double at_s) {
  Stage& stage = stages_[index];
  const Bucket& bucket = stage.buckets[i];
  const double bytes = bucket.parameters * gradient_bytes_;
  double done_s = collective(stage, bytes, at_s, false);
  if (options_.cost.optimizer == OptimizerKind::kReplicated) {
    done_s = collective(stage, bytes, done_s, true);
  }
  if (options_.record && stage.worker_count > 1) {
    record({SimulatedEvent::Kind::kReduceScatter, step_, StageIndex(index), 0, i, bucket.chunk,
            at_s, done_s});
  }
  if (tied_parameters_ > 0 && bucket.layer == Bucket::Layer::kEmbedding) {
    push(done_s, Event::Kind::kTied, 0);
  }
  finish_reduction(done_s);
}

void Engine::finish_reduction(double done_s) {
  reduced_s_ = std::max(reduced_s_, done_s);
  HOLMES_ASSERT(reductions_left_ > 0, "each bucket is reduced once");
  if (--reductions_left_ == 0) push(reduced_s_ + vote_s(), Event::Kind::kCommit, 0);
}

/// The tied matrix: gradients go from the shard owners of the first stage to those of the last,
/// values back; exact sums send the values to every copy, else to one owner each, who gathers them
/// inside the stage.
void Engine::exchange_tied(bool back, double at_s) {
  const Stage& first = stages_.front();
  const Stage& last = stages_.back();
  const Stage& from = back ? last : first;
  const Stage& to = back ? first : last;
  const double copies =
      back && options_.cost.collective == Collective::kDirect ? to.worker_count : 1;
  const double bytes =
      tied_parameters_ * copies *
      (back && !options_.cost.exact ? options_.cost.element_bytes : gradient_bytes_);
  const Group* tied = group(GroupKind::kTied, plan_.stages.front().shares.front().device);
  const auto& paths = tied != nullptr && options_.cost.nic_selection ? tied->paths : common_;
  double end_s = at_s;
  for (const HostShare& a : from.hosts) {
    for (const HostShare& b : to.hosts) {
      if (a.host == b.host) continue;
      const double part = bytes * a.shares / from.worker_count * b.shares / to.worker_count;
      end_s =
          std::max(end_s, channels_.transfer(channels_.way_on(a.host, b.host, paths), at_s, part));
    }
  }
  if (options_.record) {
    record({SimulatedEvent::Kind::kTied, step_, StageIndex(back ? stage_count_ - 1 : 0), 0, 0, 0,
            at_s, end_s});
  }
  if (back) {
    // The embedding is the first bucket of the first stage.
    stages_.front().buckets.front().gathered_s =
        std::max(stages_.front().buckets.front().gathered_s, end_s);
    open_when_gathered(0, end_s);
  } else {
    finish_reduction(end_s);
  }
}

/// Norms go up a tree of members and the commit comes down.
double Engine::vote_s() {
  double members = 0;
  for (const Stage& stage : stages_) members += stage.worker_count * plan_.tensor;
  if (members <= 1) return 0;
  double latency_s = options_.cost.local_latency_us * kMicro;
  const HostId root = workers_.front().host;
  for (const Stage& stage : stages_) {
    const HostId host = stage.hosts.front().host;
    if (host == root) continue;
    latency_s = std::max(latency_s, channels_.way_on(root, host, common_).latency_s);
  }
  const double depth = std::ceil(std::log(members) / std::log(kVoteFanOut) - 1e-9);
  return 2 * std::max(1.0, depth) * latency_s;
}

void Engine::commit(double at_s) {
  commits_s_.push_back(at_s);
  if (options_.record) {
    const double voted_s = at_s - vote_s();
    record({SimulatedEvent::Kind::kVote, step_, StageIndex(0), 0, 0, 0, voted_s, at_s});
  }
  end_s_ = at_s;
  for (Worker& worker : workers_) {
    worker.time.collective_s += std::max(0.0, at_s - worker.free_s);
  }
  if (commits_s_.size() == options_.steps) {
    for (const Worker& worker : workers_) result_.devices.push_back(worker.time);
    result_.channels = channels_.used();
  }
  begin_step();
  for (Worker& worker : workers_) {
    update(worker, stages_[worker.time.stage.index()], at_s);
    worker.open = false;
  }
  ++step_;
  for (std::uint32_t s = 0; s < stage_count_; ++s) push_gathers(s);
  if (tied_parameters_ > 0) {
    push(stages_.back().buckets.back().updated_s, Event::Kind::kTiedBack, 0);
  }
}

void Engine::push_gathers(std::uint32_t index) {
  Stage& stage = stages_[index];
  for (std::uint32_t i = 0; i < stage.buckets.size(); ++i) {
    Bucket& bucket = stage.buckets[i];
    bucket.gathered_s = bucket.updated_s;
    end_s_ = std::max(end_s_, bucket.updated_s);
    if (options_.cost.optimizer != OptimizerKind::kReplicated) {
      push(bucket.updated_s, Event::Kind::kGather, index, i);
    }
  }
  if (options_.cost.optimizer == OptimizerKind::kReplicated) {
    open_when_gathered(index, stage.buckets.back().updated_s);
  }
}

/// AdamW on the worker's shard of each bucket, in the order in which forwards need them.
void Engine::update(Worker& worker, Stage& stage, double at_s) {
  const bool sharded = options_.cost.optimizer != OptimizerKind::kReplicated;
  const double shards = (sharded ? stage.worker_count : 1.0) * plan_.tensor;
  worker.free_s = std::max(worker.free_s, at_s);
  const double begin_s = worker.free_s;
  for (Bucket& bucket : stage.buckets) {
    worker.free_s +=
        bucket.parameters / shards * kUpdateBytes / (options_.cost.memory_gbyte_s * kGigabyte);
    bucket.updated_s = std::max(bucket.updated_s, worker.free_s);
  }
  worker.time.optimizer_s += worker.free_s - begin_s;
  if (options_.record) {
    record({SimulatedEvent::Kind::kUpdate, step_, worker.time.stage, worker.replica, 0, 0, begin_s,
            worker.free_s});
  }
}

void Engine::gather(std::uint32_t index, std::uint32_t i, double at_s) {
  Stage& stage = stages_[index];
  Bucket& bucket = stage.buckets[i];
  const double bytes = bucket.parameters * (options_.cost.exact ? 4 : options_.cost.element_bytes);
  const double done_s = collective(stage, bytes, at_s, true);
  bucket.gathered_s = std::max(bucket.gathered_s, done_s);
  if (options_.record && stage.worker_count > 1) {
    record({SimulatedEvent::Kind::kAllGather, step_ - 1, StageIndex(index), 0, i, bucket.chunk,
            at_s, done_s});
  }
  open_when_gathered(index, done_s);
}

/// When all is known to come, forwards may start so that each layer meets its parameters.
void Engine::open_when_gathered(std::uint32_t index, double gathered_s) {
  end_s_ = std::max(end_s_, gathered_s);
  Stage& stage = stages_[index];
  HOLMES_ASSERT(stage.gathers_left > 0, "each bucket is gathered once");
  if (--stage.gathers_left > 0 || commits_s_.size() == options_.steps) return;
  const bool overlapped = options_.cost.optimizer == OptimizerKind::kOverlapped;
  double latest_s = 0;
  for (const Bucket& bucket : stage.buckets) latest_s = std::max(latest_s, bucket.gathered_s);
  for (std::uint32_t w = stage.first_worker; w < stage.first_worker + stage.worker_count; ++w) {
    Worker& worker = workers_[w];
    for (Durations& chunk : worker.chunks) chunk.gate_s = overlapped ? 0 : latest_s;
    for (const Bucket& bucket : stage.buckets) {
      if (!overlapped) break;
      double before_s = bucket.blocks_before * worker.layers.block_forward_s;
      if (bucket.embedding_before) before_s += worker.layers.embedding_forward_s;
      double& gate_s = worker.chunks[bucket.chunk].gate_s;
      gate_s = std::max(gate_s, bucket.gathered_s - before_s);
    }
    worker.open = true;
    try_start(w);
  }
}

}  // namespace holmes::partition
