#include "replica.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "holmes/partition/reduction_tree.hpp"

namespace holmes::actors {

namespace {

/// Rate at which sums and updates pass memory, for the modelled time of paced and simulated
/// devices.
constexpr double kMemoryBytesPerS = 10e9;

/// Leaves whose accumulators the Stage may hold at once.
constexpr std::uint32_t kLeavesLent = 2;

/// The device and those below it in the vote tree.
std::vector<DeviceId> voters(const partition::Plan& plan, DeviceId device) {
  auto voters = vote_children(plan, device);
  voters.push_back(device);
  return voters;
}

}  // namespace

transport::TensorShape flat_shape(std::size_t elements) {
  return {transport::DType::kF32, {static_cast<std::uint32_t>(elements)}};
}

Replica::Replica(caf::actor_system& system, Executor& executor, Logger log, ReplicaSpec spec,
                 ReplicaResources resources)
    : ExecutorActor(system, executor, std::move(log)),
      spec_(std::move(spec)),
      resources_(std::move(resources)),
      step_(spec_.first_step),
      votes_(voters(*spec_.plan, spec_.device)) {
  const auto leaf_count = spec_.plan->job.reduction_leaves;
  for (std::size_t i = 0; i < shares().size(); ++i) {
    const auto& share = shares()[i];
    all_subtrees_.push_back(partition::maximal_subtrees(leaf_count, share.leaves));
    node_count_ += all_subtrees_.back().size();
    if (share.device != spec_.device) continue;
    share_ = i;
    leaves_ = share.leaves;
    subtrees_ = all_subtrees_.back();
    gradients_max_ = std::max(partition::buffers_needed(leaf_count, leaves_),
                              std::min(kLeavesLent, leaves_.last - leaves_.first + 1));
  }
  HOLMES_ASSERT(!subtrees_.empty(), "a replica has a share of its stage");
  tied_slices_ = tied_slices(spec_.table->front(), shares(StageIndex(0)).size(), head_table(),
                             shares(last_stage()).size());
  for (const auto number : spec_.layers) {
    Bucket bucket;
    bucket.table = &spec_.table->at(number);
    bucket.shard = bucket.table->shard(share_, replica_count());
    buckets_.push_back(std::move(bucket));
  }
  for (const auto& share : spec_.kept)
    for (const auto number : share.layers) {
      const auto& table = spec_.table->at(number);
      const auto range = table.updated(share.share, share.share_count);
      if (range.empty()) continue;
      Kept kept;
      kept.owner = share.owner;
      kept.table = &table;
      kept.chunks = table.owned_chunks(share.share, share.share_count);
      kept.range = range;
      kept_.push_back(std::move(kept));
    }
}

caf::behavior Replica::make_behavior() {
  return {
      [this](const Go& go) { on(go); },
      [this](const Supersede& supersede) { on(supersede); },
      [this](GradientReady& ready) { on(ready); },
      [this](const LossReady& ready) { on(ready); },
      [this](TensorArrived& arrived) { on(arrived); },
      [this](Vote& vote) { on(vote); },
      [this](const Commit& commit) { on(commit); },
      [this](const StopRequested& request) {
        if (request.generation == spec_.generation) stop_requested_ = true;
      },
  };
}

// --- memory ---

void Replica::acquire_state() {
  for (auto& bucket : buckets_) {
    const auto shard_bytes = bucket.shard.size() * sizeof(float);
    bucket.parameters = acquire(bucket.table->elements * sizeof(float), "parameters");
    bucket.exp_avg = acquire(shard_bytes, "optimizer state");
    bucket.exp_avg_sq = acquire(shard_bytes, "optimizer state");
  }
  for (auto& kept : kept_) {
    const auto bytes = kept.range.size() * sizeof(float);
    kept.parameters = acquire(bytes, "a copy of parameters");
    kept.exp_avg = acquire(bytes, "a copy of optimizer state");
    kept.exp_avg_sq = acquire(bytes, "a copy of optimizer state");
  }
}

void Replica::prepare() {
  acquire_state();
  if (stopped_) return;
  auto outcome = std::make_shared<Status>();
  run(
      resources_.compute, ComputePriority::kUpdate, 0, [this, outcome] { *outcome = load_state(); },
      [this, outcome] {
        if (!*outcome) return fail("loading the state", outcome->error());
        state_is_whole();
      });
}

Status Replica::load_state() {
  std::vector<LayerState> layers;
  for (auto& bucket : buckets_)
    layers.push_back({bucket.table, bucket.parameters.mutable_as<float>(), bucket.shard,
                      bucket.exp_avg.mutable_as<float>(), bucket.exp_avg_sq.mutable_as<float>()});
  HOLMES_TRY(load_layers(layers));
  return load_kept();
}

Status Replica::load_layers(std::span<const LayerState> layers) {
  if (!spec_.checkpoint.empty()) return resources_.store.load(spec_.checkpoint, layers);
  for (const auto& layer : layers) {
    model::initialise(layer.table->parameters, spec_.seed, layer.parameters);
    std::fill(layer.exp_avg.begin(), layer.exp_avg.end(), 0.0F);
    std::fill(layer.exp_avg_sq.begin(), layer.exp_avg_sq.end(), 0.0F);
  }
  return {};
}

// --- a step begins ---

void Replica::on(const Go& go) {
  if (go.generation != spec_.generation || stopped_) return;
  HOLMES_ASSERT(whole_ && !stage_, "a replica is told to go once, when it is ready");
  routes_ = go.routes;
  stage_ = routes_->local(spec_.device).stage;
  if (spec_.save) save();
  if (spec_.stop) return;
  for (std::uint32_t slot = 0; slot < buckets_.size(); ++slot)
    caf::anon_send(stage_,
                   ParametersReady{spec_.generation, step_, slot, buckets_[slot].parameters});
  if (step_.value() >= spec_.span.steps) return;
  for (auto& kept : kept_) reserve_kept(kept);
  begin_step();
}

/// Makes ready for the gradients of step_.
void Replica::begin_step() {
  for (auto& bucket : buckets_) {
    bucket.nodes.clear();
    bucket.partials.clear();
    bucket.tied.clear();
    bucket.reduced = {};
    bucket.leaf_next = leaves_.first;
    bucket.folded = false;
    bucket.finishing = false;
    bucket.done = false;
  }
  losses_.clear();
  voted_ = false;
  reserve_partials();
  for (std::uint32_t slot = 0; slot < buckets_.size(); ++slot) lend(slot);
  for (std::uint32_t slot = 0; slot < buckets_.size(); ++slot) fold_when_complete(slot);
  replay_early();
}

/// Lends memory for the next leaves of a bucket as far as there is room for their sums.
void Replica::lend(std::uint32_t slot) {
  auto& bucket = buckets_[slot];
  while (bucket.leaf_next <= leaves_.last && bucket.leaves_lent < kLeavesLent &&
         bucket.gradients_held < gradients_max_) {
    Buffer buffer = acquire(bucket.table->elements * sizeof(float), "gradients");
    if (!buffer) return;
    ++bucket.leaves_lent;
    ++bucket.gradients_held;
    caf::anon_send(stage_, AccumulatorLent{spec_.generation, step_, slot, bucket.leaf_next++,
                                           std::move(buffer)});
  }
}

/// Room for what the other replicas of the stage add to this one's shards.
void Replica::reserve_partials() {
  for (auto& bucket : buckets_) {
    if (bucket.shard.empty()) continue;
    for (std::size_t other = 0; other < shares().size(); ++other) {
      const DeviceId source = shares()[other].device;
      if (routes_->is_local(source)) continue;
      for (const auto node : all_subtrees_[other]) {
        Buffer buffer = acquire(bucket.shard.size() * sizeof(float), "gradient partials");
        if (!buffer) return;
        routes_->reserve_tensor(tag(transport::BulkKind::kGradientPartial, step_,
                                    bucket.table->number, source, spec_.device, node),
                                flat_shape(bucket.shard.size()), std::move(buffer), handle());
      }
    }
  }
  if (!has_head()) return;
  for (const auto& slice : tied_slices_) {
    const DeviceId source = shares(StageIndex(0))[slice.copy_owner].device;
    if (slice.head_owner != share_ || routes_->is_local(source)) continue;
    Buffer buffer = acquire(slice.elements.size() * sizeof(float), "tied gradient");
    if (!buffer) return;
    routes_->reserve_tensor(tag(transport::BulkKind::kTiedGradient, step_, 0, source, spec_.device),
                            flat_shape(slice.elements.size()), std::move(buffer), handle());
  }
}

/// Handles what came before this member had come to its step.
void Replica::replay_early() {
  auto early = std::move(early_);
  early_.clear();
  for (auto& arrived : early) on(arrived);
}

// --- helpers ---

void Replica::run(ComputeQueue& queue, ComputePriority priority, std::size_t bytes,
                  std::function<void()> work, std::function<void()> done) {
  ++jobs_;
  const auto modelled = from_seconds(static_cast<double>(bytes) / kMemoryBytesPerS);
  auto engine = std::make_shared<Status>();
  const bool computes = &queue == &resources_.compute;
  auto then_look = [work = std::move(work), engine, computes, &from = resources_.engine] {
    work();
    if (computes) *engine = from.status();
  };
  queue.submit(priority, modelled, std::move(then_look), executor(),
               guarded([this, engine, done = std::move(done)] {
                 --jobs_;
                 if (!stopped_ && !*engine) fail("computing", engine->error());
                 if (!stopped_) return done();
                 if (quiet_to_ && jobs_ == 0) reply_quiet();
               }));
}

void Replica::on(const Supersede& supersede) {
  if (supersede.generation <= spec_.generation) return;
  stopped_ = true;
  quiet_to_ = supersede.reply_to;
  quiet_generation_ = supersede.generation;
  if (jobs_ == 0) reply_quiet();
}

/// Lent memory goes back; the state, and what is reduced, are left behind.
void Replica::reply_quiet() {
  early_.clear();
  auto state = std::exchange(whole_, false) ? leave_state() : nullptr;
  buckets_.clear();
  kept_.clear();
  caf::anon_send(quiet_to_, Quiet{quiet_generation_, spec_.device, std::move(state)});
  quiet_to_ = caf::actor();
}

Buffer Replica::acquire(std::size_t bytes, const char* what) {
  auto buffer = resources_.pool.acquire(bytes);
  if (buffer) return *std::move(buffer);
  fail(std::string("memory for ") + what, buffer.error());
  return {};
}

void Replica::fail(std::string operation, Error error) {
  if (stopped_) return;
  stopped_ = true;
  whole_ = false;  // an update may have been left half done
  caf::anon_send(resources_.agent, MemberFailed{spec_.generation, spec_.device,
                                                std::move(operation), std::move(error)});
}

std::uint32_t Replica::slot_of(LayerIndex layer) const {
  const auto at = std::find(spec_.layers.begin(), spec_.layers.end(), layer.value());
  HOLMES_ASSERT(at != spec_.layers.end(), "a payload for a layer that the stage lacks");
  return static_cast<std::uint32_t>(at - spec_.layers.begin());
}

const std::vector<partition::Share>& Replica::shares() const {
  return shares(spec_.stage);
}

const std::vector<partition::Share>& Replica::shares(StageIndex stage) const {
  return spec_.plan->stages.at(stage.index()).shares;
}

StageIndex Replica::last_stage() const {
  return StageIndex(static_cast<std::uint32_t>(spec_.plan->stages.size() - 1));
}

transport::BulkTag Replica::tag(transport::BulkKind kind, Step step, std::uint32_t layer,
                                DeviceId source, DeviceId destination, std::uint32_t node) const {
  transport::BulkTag tag;
  tag.generation = spec_.generation;
  tag.step = step;
  tag.kind = kind;
  tag.layer = LayerIndex(layer);
  tag.node = node;
  tag.source = source;
  tag.destination = destination;
  const bool from_last = kind == transport::BulkKind::kTiedParameters;
  const bool from_first = kind == transport::BulkKind::kTiedGradient;
  const bool anywhere = kind == transport::BulkKind::kReducedGradient;  // keepers are in any stage
  tag.stage = from_last ? last_stage() : from_first || anywhere ? StageIndex(0) : spec_.stage;
  return tag;
}

}  // namespace holmes::actors
