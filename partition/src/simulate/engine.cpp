#include "simulate/engine.hpp"

#include <algorithm>

#include "holmes/base/assert.hpp"
#include "holmes/partition/reduction_tree.hpp"

namespace holmes::partition {
namespace {

std::vector<std::uint32_t> weight_passes(const std::vector<ScheduledPass>& program,
                                         std::uint32_t chunks) {
  std::vector<std::uint32_t> counts(chunks, 0);
  for (const ScheduledPass& pass : program) {
    if (pass.pass == Pass::kBackward || pass.pass == Pass::kBackwardWeight) ++counts[pass.chunk];
  }
  return counts;
}

}  // namespace

Engine::Engine(const Plan& plan, const Cluster& cluster, const ModelCost& model,
               const SimulateOptions& options)
    : plan_(plan),
      cluster_(cluster),
      options_(options),
      hosts_(hosts_by_device(cluster)),
      devices_(devices_by_rank(cluster)),
      channels_(cluster, options),
      stage_count_(static_cast<std::uint32_t>(plan.stages.size())),
      micro_batches_(plan.job.micro_batch_count()) {
  edge_bytes_ = plan.job.micro_batch * edge_bytes(model, options.cost);
  gradient_bytes_ = options.cost.exact ? 4 : options.cost.element_bytes;
  tied_parameters_ = stage_count_ > 1 ? static_cast<double>(model.tied_parameters()) : 0;
  for (const Group& of : plan.groups) {
    if (of.kind == GroupKind::kVote) common_ = of.paths;
  }
  for (const Edge& edge : plan.edges) {
    edge_paths_.push_back(options.cost.nic_selection ? edge.paths : common_);
  }
  for (std::uint32_t s = 0; s < stage_count_; ++s) add_stage(model, s);
}

const Group* Engine::group(GroupKind kind, DeviceId device) const {
  const auto found = std::find_if(plan_.groups.begin(), plan_.groups.end(), [&](const Group& of) {
    return of.kind == kind &&
           std::find(of.devices.begin(), of.devices.end(), device) != of.devices.end();
  });
  return found == plan_.groups.end() ? nullptr : &*found;
}

void Engine::add_stage(const ModelCost& model, std::uint32_t index) {
  const StagePlan& at = plan_.stages[index];
  Stage stage;
  stage.first_worker = static_cast<std::uint32_t>(workers_.size());
  stage.worker_count = static_cast<std::uint32_t>(at.shares.size());
  add_buckets(model, index, stage);
  auto& owners = owners_.emplace_back(plan_.job.reduction_leaves, 0);
  for (std::uint32_t r = 0; r < at.shares.size(); ++r) {
    const Share& share = at.shares[r];
    for (std::uint32_t leaf = share.leaves.first; leaf <= share.leaves.last; ++leaf) {
      owners[leaf] = stage.first_worker + r;
    }
    const HostId host = hosts_[share.device.index()];
    auto place = std::find_if(stage.hosts.begin(), stage.hosts.end(),
                              [&](const HostShare& of) { return of.host == host; });
    if (place == stage.hosts.end()) place = stage.hosts.insert(place, {host, 0, 0});
    const double subtrees =
        options_.cost.exact
            ? static_cast<double>(maximal_subtrees(plan_.job.reduction_leaves, share.leaves).size())
            : 1;
    ++place->shares;
    place->subtrees += subtrees;
    stage.subtrees += subtrees;
    stage.shares_max = std::max(stage.shares_max, place->shares);
    add_worker(model, index, r);
  }
  const Group* data = group(GroupKind::kData, at.shares.front().device);
  if (data != nullptr) stage.paths = options_.cost.nic_selection ? data->paths : common_;
  stages_.push_back(std::move(stage));
}

void Engine::add_buckets(const ModelCost& model, std::uint32_t index, Stage& stage) {
  const bool first = index == 0;
  for (std::uint32_t chunk = 0; chunk < plan_.chunks; ++chunk) {
    const bool embedding = first && chunk == 0;
    Bucket bucket;
    bucket.chunk = chunk;
    if (embedding) {
      bucket.layer = Bucket::Layer::kEmbedding;
      bucket.parameters = static_cast<double>(model.embedding_parameters);
      stage.buckets.push_back(bucket);
    }
    bucket.embedding_before = embedding;
    bucket.layer = Bucket::Layer::kBlock;
    bucket.parameters = static_cast<double>(model.block_parameters);
    const std::uint32_t blocks = chunk_blocks(plan_, StageIndex(index), chunk);
    for (; bucket.blocks_before < blocks; ++bucket.blocks_before) stage.buckets.push_back(bucket);
    if (index + 1 == stage_count_ && chunk + 1 == plan_.chunks) {
      bucket.layer = Bucket::Layer::kHead;
      bucket.parameters = static_cast<double>(model.head_parameters);
      stage.buckets.push_back(bucket);
    }
  }
}

void Engine::add_worker(const ModelCost& model, std::uint32_t stage, std::uint32_t replica) {
  const Share& share = plan_.stages[stage].shares[replica];
  double tflops = devices_[share.device.index()]->tflops;
  for (const DeviceId peer : share.peers) {
    tflops = std::min(tflops, devices_[peer.index()]->tflops);
  }
  Worker worker;
  worker.time.stage = StageIndex(stage);
  worker.time.device = share.device;
  worker.host = hosts_[share.device.index()];
  worker.replica = replica;
  worker.layers = layer_times(model, plan_.job, tflops, plan_.tensor, options_.cost);
  worker.profile = profile_of(options_.changes, SpeedChange::What::kHost, worker.host.index());
  worker.program = schedule(plan_, StageIndex(stage), share.device);
  worker.weights_left = weight_passes(worker.program, plan_.chunks);
  for (std::uint32_t chunk = 0; chunk < plan_.chunks; ++chunk) {
    worker.chunks.push_back({pass_times(plan_, StageIndex(stage), chunk, worker.layers), 0});
  }
  // Only the first stage starts by itself.
  if (stage == 0) worker.offset_s = share.offset_us * 1e-6;
  workers_.push_back(std::move(worker));
}

void Engine::push(double at_s, Event::Kind kind, std::uint32_t index, std::uint32_t bucket) {
  queue_.push({at_s, pushed_++, kind, index, bucket});
}

void Engine::handle(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kPassEnd:
      return end_pass(event.index, event.at_s);
    case Event::Kind::kReduce:
      return reduce(event.index, event.bucket, event.at_s);
    case Event::Kind::kTied:
      return exchange_tied(false, event.at_s);
    case Event::Kind::kCommit:
      return commit(event.at_s);
    case Event::Kind::kGather:
      return gather(event.index, event.bucket, event.at_s);
    case Event::Kind::kTiedBack:
      return exchange_tied(true, event.at_s);
    case Event::Kind::kFlow:
      return end_flow(event);
  }
}

void Engine::begin_step() {
  const std::size_t messages = std::size_t{stage_count_} * plan_.chunks * micro_batches_;
  activations_.assign(messages, {});
  gradients_.assign(messages, {});
  reduced_s_ = 0;
  reductions_left_ = tied_parameters_ > 0 ? 1 : 0;
  for (Stage& stage : stages_) {
    reductions_left_ += static_cast<std::uint32_t>(stage.buckets.size());
    for (Bucket& bucket : stage.buckets) {
      bucket.ready_s = bucket.updated_s = bucket.gathered_s = 0;
      bucket.ready_count = 0;
    }
    const bool gathers = options_.cost.optimizer != OptimizerKind::kReplicated;
    stage.gathers_left = gathers ? static_cast<std::uint32_t>(stage.buckets.size()) : 1;
  }
  if (tied_parameters_ > 0) ++stages_.front().gathers_left;
  for (Worker& worker : workers_) {
    worker.position = 0;
    worker.waiting = true;
    worker.weights_left = weight_passes(worker.program, plan_.chunks);
    DeviceTime& time = worker.time;
    time.forward_s = time.backward_s = time.optimizer_s = 0;
    time.transfer_s = time.bubble_s = time.collective_s = 0;
  }
  channels_.begin_step();
}

Simulation Engine::run() {
  begin_step();
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) try_start(worker);
  while (!queue_.empty()) {
    const Event event = queue_.top();
    queue_.pop();
    handle(event);
  }
  HOLMES_ASSERT(commits_s_.size() == options_.steps, "a valid schedule never deadlocks");
  result_.step_s =
      options_.steps > 1 ? commits_s_.back() - commits_s_[commits_s_.size() - 2] : end_s_;
  result_.commits_s = std::move(commits_s_);
  result_.transfers = channels_.take_records();
  return std::move(result_);
}

}  // namespace holmes::partition
