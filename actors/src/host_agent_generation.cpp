// One generation at a host: its actors are built, get their state, train, and are stopped.

#include <algorithm>

#include "host_agent.hpp"

namespace holmes::actors {

namespace {

/// The stage in which `device` has a share, if any.
std::optional<StageIndex> stage_of(const partition::Plan& plan, DeviceId device) {
  for (std::uint32_t stage = 0; stage < plan.stages.size(); ++stage)
    for (const auto& share : plan.stages[stage].shares)
      if (share.device == device) return StageIndex(stage);
  return std::nullopt;
}

/// Modelled time of an update that was left undone.
constexpr Duration kSettle = std::chrono::milliseconds(1);

UpdateRule update_rule(const JobConfig& job) {
  return {job.train.optimizer, job.train.learning_rate, job.train.clip_norm};
}

KeptShare kept_share(const partition::Plan& plan, DeviceId owner, const model::GptConfig& model) {
  const auto stage = *stage_of(plan, owner);
  const auto& shares = plan.stages[stage.index()].shares;
  const auto at = std::find_if(shares.begin(), shares.end(),
                               [owner](const auto& share) { return share.device == owner; });
  return {owner, stage_layers(plan, stage, model), static_cast<std::size_t>(at - shares.begin()),
          shares.size()};
}

TrainingSpan training_span(const JobConfig& job) {
  return {job.train.steps, job.data.validate_every, job.data.validation_batches};
}

}  // namespace

void HostAgent::on(const Prepare& prepare) {
  if (prepare.generation < generation_ || (order_ && prepare.generation <= order_->generation))
    return log().warning("an order to prepare an old generation was ignored");
  if (prepare.plan.empty()) return leave();
  if (cluster_ == nullptr) return log().warning("a plan for an agent that has not started");
  if (!use_nics(prepare.nics_down)) return log().warning("an order about NICs that there are not");
  generation_ = prepare.generation;
  order_ = std::make_shared<const Prepare>(prepare);
  settle_and_build();
}

/// Everybody must choose the same NICs: those that are down are down for all.
bool HostAgent::use_nics(const std::vector<HostNic>& down) {
  auto cluster = whole_cluster_;
  for (const auto& [host, nic] : down) {
    if (host.index() >= cluster.hosts.size() ||
        nic.index() >= cluster.hosts[host.index()].nics.size())
      return false;
    cluster.hosts[host.index()].nics[nic.index()].port_up = false;
  }
  job_.cluster = cluster;
  cluster_ = std::make_shared<const partition::Cluster>(std::move(cluster));
  return true;
}

/// What is committed is applied first, where it is not yet.
void HostAgent::settle_and_build() {
  const auto& order = *order_;
  for (auto& device : devices_) {
    if (order.transfers.empty()) device.left.clear();
    for (const auto& state : device.left) {
      if (!order.settle_norm || !state->reduced ||
          state->updates.value() + 1 != order.first_step.value())
        continue;
      ++settling_;
      device.queue->submit(
          ComputePriority::kUpdate, kSettle,
          [state, rule = update_rule(job_), norm = *order.settle_norm, table = table_,
           engine = device.engine.get()] { settle(*engine, *state, rule, norm, *table); },
          executor(), guarded([this, generation = generation_] {
            --settling_;
            if (generation != generation_) return report_when_quiet();
            if (settling_ == 0) build();
          }));
    }
  }
  if (settling_ == 0) build();
}

void HostAgent::build() {
  if (const auto built = build_members(*order_); !built)
    return report_failure({generation_, false, {}, "", "preparing", built.error()});
  open_links(*order_);
  ready_when_complete();
}

Status HostAgent::build_members(const Prepare& prepare) {
  HOLMES_TRY(partition::validate(prepare.plan, *cluster_, job_.model.layers, job_.model.tied()));
  HOLMES_TRY(partition::check_runnable(prepare.plan));
  const auto plan = std::make_shared<const partition::Plan>(prepare.plan);
  const auto keepers = keepers_of(*plan, job_);
  std::map<DeviceId, LocalMember> local;
  members_preparing_.clear();
  preparing_ = true;
  exchanged_ = false;
  for (auto& device : devices_) {  // what they held is free for the next ones
    device.stage.reset();
    device.replica.reset();
  }
  for (auto& device : devices_) {
    const auto stage = stage_of(*plan, device.id);
    if (!stage) continue;
    build_replica(device, *stage, plan, keepers);
    build_stage(device, *stage, *plan);
    local[device.id] = {device.stage->handle(), device.replica->handle()};
    members_preparing_.insert(device.id);
  }
  std::vector<caf::actor> nics;
  for (const auto& nic : nics_) nics.push_back(nic->handle());
  DevicePairs further(keepers.begin(), keepers.end());
  for (const auto& transfer : prepare.transfers)
    further.emplace_back(transfer.source, transfer.destination);
  routes_ = std::make_shared<const Routes>(generation_, plan, cluster_, host_, std::move(local),
                                           std::move(nics), std::move(further));
  HOLMES_TRY(reserve_memory());
  for (auto& device : devices_)
    if (device.replica && prepare.transfers.empty()) device.replica->prepare();
  return {};
}

/// All of it before the first step: no step asks the system for memory.
Status HostAgent::reserve_memory() {
  std::map<BufferPool*, BufferDemand> demands;
  for (const auto& device : devices_) {
    if (!device.replica) continue;
    demands[device.pool.get()].add(device.replica->demand(*routes_));
    demands[device.pool.get()].add(device.stage->demand(*routes_));
    demands[device.payloads.get()].add(device.stage->payload_demand(*routes_));
  }
  for (const auto& [pool, demand] : demands)
    if (const auto reserved = pool->reserve(demand); !reserved)
      return reserved.error().in(
          "the devices of this host have too little memory for their layers; "
          "raise memory_gib of its devices in the cluster file if they have "
          "more, use more stages, or set train.micro_batch lower");
  return {};
}

void HostAgent::build_replica(Device& device, StageIndex stage,
                              const std::shared_ptr<const partition::Plan>& plan,
                              const Keepers& keepers) {
  ReplicaSpec spec;
  spec.generation = generation_;
  spec.stage = stage;
  spec.device = device.id;
  spec.plan = plan;
  spec.table = table_;
  spec.layers = stage_layers(*plan, stage, job_.model);
  spec.span = training_span(job_);
  spec.first_step = order_->first_step;
  spec.checkpoint_every = job_.run.checkpoint_every;
  spec.seed = job_.train.seed;
  spec.checkpoint = order_->checkpoint;
  spec.rule = update_rule(job_);
  if (const auto keeper = keepers.find(device.id); keeper != keepers.end())
    spec.keeper = keeper->second;
  for (const auto& [owner, keeper] : keepers)
    if (keeper == device.id) spec.kept.push_back(kept_share(*plan, owner, job_.model));
  for (const auto& transfer : order_->transfers)
    if (transfer.destination == device.id) spec.transfers.push_back(transfer);
  spec.save = order_->save;
  spec.stop = order_->stop;
  device.replica = std::make_unique<Replica>(
      system_, environment_.member_executor(),
      log().named("replica " + std::to_string(device.id.value())), std::move(spec),
      ReplicaResources{*device.queue, *device.engine, *disk_, *device.pool, *store_, handle()});
  device.replica->start();
}

void HostAgent::build_stage(Device& device, StageIndex stage, const partition::Plan& plan) {
  const auto range = layer_range(plan, stage);
  const model::MicroBatchShape shape{job_.train.shape.micro_batch, job_.train.sequence};
  StageSpec spec;
  spec.generation = generation_;
  spec.stage = stage;
  spec.device = device.id;
  spec.span = training_span(job_);
  spec.first_step = order_->first_step;
  spec.shape = shape;
  spec.channels = job_.model.channels;
  spec.has_embedding = range.embedding;
  spec.has_head = range.head;
  spec.flops_per_s = cluster_->device(device.id).tflops * 1e12;
  device.stage = std::make_unique<Stage>(
      system_, environment_.member_executor(),
      log().named("stage " + std::to_string(device.id.value())), spec,
      model::make_layers(job_.model, range, shape, *device.engine),
      StageResources{*device.queue, *device.engine, *device.pool, *device.payloads, *batches_,
                     device.replica->handle(), handle(), environment_.pass_observer()});
  device.stage->start();
}

/// Of two hosts the one with the lower number dials.
void HostAgent::open_links(const Prepare& prepare) {
  links_needed_.clear();
  KeepLinks members;
  for (const auto& at : prepare.addresses) members.peers.push_back(at.host);
  for (const auto& nic : nics_) caf::anon_send(nic->handle(), members);
  std::erase_if(links_up_, [&](const auto& link) {
    return std::find(members.peers.begin(), members.peers.end(), link.second) ==
           members.peers.end();
  });
  for (const auto& [peer, pair] : routes_->links()) {
    links_needed_.emplace(pair.own, peer);
    if (host_ > peer || links_up_.contains({pair.own, peer})) continue;
    const auto at = std::find_if(
        prepare.addresses.begin(), prepare.addresses.end(),
        [peer = peer, nic = pair.peer](const auto& a) { return a.host == peer && a.nic == nic; });
    if (at == prepare.addresses.end()) {
      report_failure({generation_,
                      false,
                      {},
                      "",
                      "preparing",
                      Error(ErrorCode::kInvalidArgument,
                            "no address for host " + std::to_string(peer.value()))});
      return;
    }
    caf::anon_send(nics_[pair.own.index()]->handle(), OpenLink{peer, at->address});
  }
}

void HostAgent::ready_when_complete() {
  if (!preparing_) return;
  if (!std::includes(links_up_.begin(), links_up_.end(), links_needed_.begin(),
                     links_needed_.end()))
    return;
  if (!std::exchange(exchanged_, true)) exchange_state();
  if (!members_preparing_.empty()) return;
  preparing_ = false;
  tell(AgentReady{generation_});
}

/// New members ask for their state, and what earlier ones have left here goes where it is needed.
void HostAgent::exchange_state() {
  if (order_->transfers.empty()) return;
  for (auto& device : devices_)
    if (device.replica) device.replica->receive_state(routes_);
  for (const auto& transfer : order_->transfers) {
    if (!routes_->is_here(transfer.source)) continue;
    const auto* piece = find_piece(transfer);
    if (piece == nullptr)
      return report_failure(
          {generation_,
           false,
           {},
           "",
           "moving state",
           Error(ErrorCode::kInternal, "layer " + std::to_string(transfer.piece.layer) +
                                           " was asked for, but is not here")});
    send_piece(transfer, *piece);
  }
}

const HeldPiece* HostAgent::find_piece(const StateTransfer& transfer) const {
  const auto& wanted = transfer.piece;
  for (const auto& device : devices_)
    for (const auto& state : device.left) {
      if (device.id != transfer.source || state->updates != order_->first_step) continue;
      for (const auto& piece : state->pieces)
        if (piece.name.layer == wanted.layer &&
            piece.name.elements.begin <= wanted.elements.begin &&
            piece.name.elements.end >= wanted.elements.end)
          return &piece;
    }
  return nullptr;
}

void HostAgent::send_piece(const StateTransfer& transfer, const HeldPiece& piece) {
  const auto elements = transfer.piece.elements;
  const auto send = [&](StatePart part, const Buffer& buffer, std::size_t begin) {
    routes_->send_tensor(state_tag(transfer, part, generation_, order_->first_step),
                         flat_shape(elements.size()),
                         BufferView(buffer, (elements.begin - begin) * sizeof(float),
                                    elements.size() * sizeof(float)));
  };
  send(StatePart::kParameters, piece.parameters, piece.parameters_begin);
  if (state_parts(transfer.use) == 1) return;
  send(StatePart::kExpAvg, piece.exp_avg, piece.moments_begin);
  send(StatePart::kExpAvgSq, piece.exp_avg_sq, piece.moments_begin);
}

void HostAgent::on(const AgentGo& go) {
  if (go.generation != generation_) return;
  let_go_of_leavers();
  for (auto& device : devices_) {
    device.left.clear();  // every member has what it needs
    if (!device.stage) continue;
    caf::anon_send(device.replica->handle(), Go{generation_, routes_});
    caf::anon_send(device.stage->handle(), Go{generation_, routes_});
  }
}

/// A host that has handed its state over, and trains no more, may go: its links are not missed.
void HostAgent::let_go_of_leavers() {
  std::set<HostId> training;
  for (const DeviceId device : routes_->plan().members())
    training.insert(cluster_->host_of(device));
  std::erase_if(links_needed_, [&](const auto& link) { return !training.contains(link.second); });
}

void HostAgent::on(const Announce& announce) {
  if (announce.generation <= generation_) return;
  generation_ = announce.generation;
  preparing_ = false;
  quiet_ = false;
  links_needed_.clear();  // those that go from now on are no news
  quiet_missing_ = 0;
  const auto supersede = [&](const caf::actor& actor) {
    ++quiet_missing_;
    caf::anon_send(actor, Supersede{announce.generation, handle()});
  };
  for (auto& device : devices_) {
    if (!device.stage) continue;
    supersede(device.stage->handle());
    supersede(device.replica->handle());
  }
  for (auto& nic : nics_) supersede(nic->handle());
  report_when_quiet();
}

/// A state counts whichever generation asked for quiet: it is left behind once.
void HostAgent::on(const Quiet& quiet) {
  if (quiet.state)
    for (auto& device : devices_)
      if (device.id == quiet.device) device.left.push_back(quiet.state);
  if (quiet.generation != generation_) return;
  HOLMES_ASSERT(quiet_missing_ > 0, "more actors are quiet than were told to be");
  --quiet_missing_;
  report_when_quiet();
}

void HostAgent::report_when_quiet() {
  if (quiet_ || quiet_missing_ > 0 || settling_ > 0) return;
  quiet_ = true;
  AgentQuiet report{generation_, {}, {}};
  for (const auto& device : devices_)
    for (const auto& state : device.left) {
      HeldState held{device.id, state->updates, state->reduced, {}};
      for (const auto& piece : state->pieces) held.pieces.push_back(piece.name);
      report.held.push_back(std::move(held));
      report.commits.insert(report.commits.end(), state->commits.begin(), state->commits.end());
    }
  tell(report);
}

void HostAgent::on(const AgentStop& stop) {
  if (stop.generation != generation_) return;
  for (auto& device : devices_)
    if (device.replica) caf::anon_send(device.replica->handle(), StopRequested{generation_});
}

/// The job is over. Where an operator still runs, memory goes back with the agent.
void HostAgent::leave() {
  if (quiet_)
    for (auto& device : devices_) {
      device.stage.reset();
      device.replica.reset();
      device.left.clear();
    }
  end(false, leaving_ ? "has left the job, as asked" : "the job is over");
}

}  // namespace holmes::actors
