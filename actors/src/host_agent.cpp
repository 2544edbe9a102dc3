#include "host_agent.hpp"

#include <unistd.h>
#include <algorithm>

namespace holmes::actors {

namespace {

constexpr Duration kDialDeadline = std::chrono::seconds(10);
/// A coordinator that is silent for so long will not come back. It may well be stopped for a while
/// (a debugger, a terminal): training does not need it.
constexpr Duration kCoordinatorSilenceMin = std::chrono::seconds(60);
constexpr int kCoordinatorHeartbeats = 4;
constexpr Duration kTrafficReportMax = std::chrono::milliseconds(250);

/// The stage in which `device` has a share, if any.
std::optional<StageIndex> stage_of(const partition::Plan& plan, DeviceId device) {
  for (std::uint32_t stage = 0; stage < plan.stages.size(); ++stage)
    for (const auto& share : plan.stages[stage].shares)
      if (share.device == device) return StageIndex(stage);
  return std::nullopt;
}

TrainingSpan training_span(const JobConfig& job) {
  return {job.train.steps, job.data.validate_every, job.data.validation_batches};
}

}  // namespace

HostAgent::HostAgent(caf::actor_system& system, Logger log, HostId host, std::string job,
                     HostEnvironment& environment, std::function<void(AgentEnd)> ended)
    : ExecutorActor(system, environment.executor(), std::move(log)),
      host_(host),
      job_name_(std::move(job)),
      system_(system),
      environment_(environment),
      ended_(std::move(ended)) {}

HostAgent::~HostAgent() {
  executor().cancel(beat_timer_);
  if (coordinator_) coordinator_->close();
  for (auto& device : devices_) device.queue.reset();  // joins: no operator runs any more
  disk_.reset();
}

caf::behavior HostAgent::make_behavior() {
  return {
      [this](const ControlArrived& arrived) { on(arrived); },
      [this](const LinkUp& up) {
        links_up_.emplace(up.nic, up.peer);
        ready_when_complete();
      },
      [this](const LinkLost& lost) { on(lost); },
      [this](const TrafficCounted& counted) { traffic_[counted.nic] = counted; },
      [this](const MemberReady& ready) {
        if (ready.generation != generation_) return;
        members_preparing_.erase(ready.device);
        ready_when_complete();
      },
      [this](const MemberFailed& failed) { on(failed); },
      [this](const StepCommitted& step) {
        tell(StepReport{step.generation, step.step, step.loss, step.gradient_norm, step.stop});
      },
      [this](const ValidationLossReady& ready) {
        tell(ValidationReport{ready.generation, ready.step, ready.index, ready.loss});
      },
      [this](const ShardSaved& saved) {
        tell(SaveReport{saved.generation, saved.step, saved.device, saved.files});
      },
      [this](const Quiet& quiet) { on(quiet); },
  };
}

// --- joining ---

void HostAgent::join(const transport::Endpoint& coordinator) {
  const transport::Identity self{job_name_, host_, kControlNic, Epoch(0)};
  environment_.control_context().connect(
      coordinator, self, kDialDeadline,
      guarded([this, coordinator](Result<std::shared_ptr<transport::Connection>> made) {
        if (made) return connected(*std::move(made));
        end(true, "cannot join the job at " + coordinator.address + ": " + made.error().message());
      }));
}

void HostAgent::connected(std::shared_ptr<transport::Connection> coordinator) {
  coordinator_ = std::move(coordinator);
  coordinator_heard_ = clock().now();
  watch_coordinator();
  coordinator_->on_closed(guarded(
      [this](const Error& error) { end(true, "the coordinator is gone: " + error.message()); }));
  coordinator_->on_control(guarded([this](const Buffer& bytes) { from_coordinator(bytes); }));
  beat();
}

void HostAgent::from_coordinator(const Buffer& bytes) {
  if (over_) return;
  coordinator_heard_ = clock().now();
  const auto message = decode(bytes);
  if (!message) return end(true, "from the coordinator: " + message.error().message());
  std::visit(
      [this](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Welcome> || std::is_same_v<T, Prepare> ||
                      std::is_same_v<T, AgentGo> || std::is_same_v<T, Announce> ||
                      std::is_same_v<T, AgentStop>) {
          if (is_in_force(value.epoch)) on(value);
        } else if constexpr (!std::is_same_v<T, Heartbeat>)
          log().warning("the coordinator sent a message that is not for agents");
      },
      *message);
}

bool HostAgent::is_in_force(Epoch epoch) {
  if (epoch < epoch_) {
    log().warning("an order of a coordinator that has been replaced was ignored");
    return false;
  }
  epoch_ = epoch;
  return true;
}

void HostAgent::on(const Welcome& welcome) {
  if (cluster_ != nullptr) return log().warning("a second welcome was ignored");
  if (const auto opened = open(welcome); !opened)
    return report_failure({generation_, false, {}, "", "starting", opened.error()});
  Join join{host_, static_cast<std::uint32_t>(::getpid()), {}, ""};
  for (std::uint32_t nic = 0; nic < nics_.size(); ++nic) {
    auto address = nics_[nic]->listen(environment_.listen_at(*cluster_, host_, NicId(nic)));
    if (!address)
      return report_failure({generation_,
                             false,
                             {},
                             cluster_->hosts[host_.index()].nics[nic].name,
                             "opening the NIC",
                             address.error()});
    join.nics.push_back({host_, NicId(nic), *std::move(address)});
  }
  tell(join);
  executor().cancel(beat_timer_);
  beat();  // by the job's period from now on
}

Status HostAgent::open(const Welcome& welcome) {
  HOLMES_TRY_ASSIGN(job_, parse_resolved_job(welcome.job_toml, welcome.cluster_toml));
  if (host_.index() >= job_.cluster.hosts.size())
    return Error(ErrorCode::kInvalidArgument, "this agent's host is not in the cluster file");
  cluster_ = std::make_shared<const partition::Cluster>(job_.cluster);
  table_ = std::make_shared<const std::vector<LayerTable>>(model_table(job_.model));
  watch_coordinator();  // its period is known only now
  HOLMES_TRY_ASSIGN(batches_, environment_.open_batches(job_));
  if (batches_->data_hash() != welcome.data_hash)
    return Error(ErrorCode::kInvalidArgument,
                 "data.text: " + job_.data.text.string() +
                     " has another content here than where the job was started; copy the text to "
                     "every host, and leave it alone while a job trains on it");
  HOLMES_TRY_ASSIGN(store_, environment_.open_store(job_));
  disk_ = environment_.open_disk();
  double memory_gib = 0;
  std::uint32_t device = 0;
  for (const auto& host : cluster_->hosts)
    for (const auto& item : host.devices) {
      if (&host == &cluster_->hosts[host_.index()]) {
        devices_.push_back({DeviceId(device), environment_.open_device(item),
                            environment_.make_engine(), nullptr, nullptr});
        memory_gib += item.memory_gib;
      }
      ++device;
    }
  pool_ = std::make_unique<BufferPool>(
      static_cast<std::size_t>(memory_gib * static_cast<double>(kGiB)));
  return open_nics();
}

Status HostAgent::open_nics() {
  const auto& host = cluster_->hosts[host_.index()];
  for (std::uint32_t nic = 0; nic < host.nics.size(); ++nic) {
    contexts_.push_back(
        environment_.open_nic(*cluster_, host_, NicId(nic), job_.transport.emulate));
    const std::string name = host.name + "/" + host.nics[nic].name;
    const Duration silence_max = std::chrono::milliseconds(job_.resilience.timeout_ms);
    NicSpec spec{{job_name_, host_, NicId(nic), Epoch(0)},
                 name,
                 kDialDeadline,
                 std::min(kTrafficReportMax, silence_max / 4),
                 silence_max};
    nics_.push_back(std::make_unique<Nic>(system_, log().named("nic " + name), std::move(spec),
                                          *contexts_.back(), handle()));
    nics_.back()->start();
  }
  return {};
}

// --- a generation ---

void HostAgent::on(const Prepare& prepare) {
  if (prepare.generation <= generation_)
    return log().warning("an order to prepare an old generation was ignored");
  if (prepare.plan.empty()) return end(false, "the job is over");
  if (cluster_ == nullptr) return log().warning("a plan for an agent that has not started");
  generation_ = prepare.generation;
  if (const auto built = build_members(prepare); !built)
    return report_failure({generation_, false, {}, "", "preparing", built.error()});
  open_links(prepare);
  ready_when_complete();
}

Status HostAgent::build_members(const Prepare& prepare) {
  HOLMES_TRY(partition::validate(prepare.plan, *cluster_, job_.model.layers));
  HOLMES_TRY(partition::check_runnable(prepare.plan));
  const auto plan = std::make_shared<const partition::Plan>(prepare.plan);
  std::map<DeviceId, LocalMember> local;
  members_preparing_.clear();
  preparing_ = true;
  for (auto& device : devices_) {  // what they held is free for the next ones
    device.stage.reset();
    device.replica.reset();
  }
  for (auto& device : devices_) {
    const auto stage = stage_of(*plan, device.id);
    if (!stage) continue;
    build_member(device, *stage, prepare);
    local[device.id] = {device.stage->handle(), device.replica->handle()};
    members_preparing_.insert(device.id);
  }
  std::vector<caf::actor> nics;
  for (const auto& nic : nics_) nics.push_back(nic->handle());
  routes_ = std::make_shared<const Routes>(generation_, plan, cluster_, host_, std::move(local),
                                           std::move(nics));
  HOLMES_TRY(reserve_memory());
  for (auto& device : devices_)
    if (device.replica) device.replica->prepare();
  return {};
}

/// All of it before the first step: no step asks the system for memory.
Status HostAgent::reserve_memory() {
  BufferDemand demand;
  for (const auto& device : devices_) {
    if (!device.replica) continue;
    demand.add(device.replica->demand(*routes_));
    demand.add(device.stage->demand(*routes_));
  }
  const auto reserved = pool_->reserve(demand);
  if (reserved) return {};
  return reserved.error().in(
      "the devices of this host have too little memory for their layers; "
      "raise memory_gib of its devices in the cluster file if they have "
      "more, use more stages, or set train.micro_batch lower");
}

void HostAgent::build_member(Device& device, StageIndex stage, const Prepare& prepare) {
  const auto plan = std::make_shared<const partition::Plan>(prepare.plan);
  const auto name = std::to_string(device.id.value());
  ReplicaSpec replica;
  replica.generation = generation_;
  replica.stage = stage;
  replica.device = device.id;
  replica.plan = plan;
  replica.table = table_;
  replica.layers = stage_layers(*plan, stage, job_.model);
  replica.span = training_span(job_);
  replica.first_step = prepare.first_step;
  replica.checkpoint_every = job_.run.checkpoint_every;
  replica.seed = job_.train.seed;
  replica.checkpoint = prepare.checkpoint;
  replica.optimizer = job_.train.optimizer;
  replica.learning_rate = job_.train.learning_rate;
  replica.clip_norm = job_.train.clip_norm;
  device.replica = std::make_unique<Replica>(
      system_, environment_.member_executor(), log().named("replica " + name), std::move(replica),
      ReplicaResources{*device.queue, *disk_, *pool_, *store_, handle()});
  device.replica->start();

  const auto range = layer_range(*plan, stage);
  const model::MicroBatchShape shape{job_.train.shape.micro_batch, job_.train.sequence};
  StageSpec spec;
  spec.generation = generation_;
  spec.stage = stage;
  spec.device = device.id;
  spec.span = training_span(job_);
  spec.first_step = prepare.first_step;
  spec.shape = shape;
  spec.channels = job_.model.channels;
  spec.has_embedding = range.embedding;
  spec.has_head = range.head;
  spec.flops_per_s = cluster_->device(device.id).tflops * 1e12;
  device.stage = std::make_unique<Stage>(
      system_, environment_.member_executor(), log().named("stage " + name), spec,
      model::make_layers(job_.model, range, shape, *device.engine),
      StageResources{*device.queue, *pool_, *batches_, device.replica->handle(), handle(),
                     environment_.pass_observer()});
  device.stage->start();
}

/// Of two hosts the one with the lower number dials.
void HostAgent::open_links(const Prepare& prepare) {
  links_needed_.clear();
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
  if (!preparing_ || !members_preparing_.empty()) return;
  if (!std::includes(links_up_.begin(), links_up_.end(), links_needed_.begin(),
                     links_needed_.end()))
    return;
  preparing_ = false;
  tell(AgentReady{generation_});
}

void HostAgent::on(const AgentGo& go) {
  if (go.generation != generation_) return;
  for (auto& device : devices_) {
    if (!device.stage) continue;
    caf::anon_send(device.replica->handle(), Go{generation_, routes_});
    caf::anon_send(device.stage->handle(), Go{generation_, routes_});
  }
}

void HostAgent::on(const Announce& announce) {
  if (announce.generation <= generation_) return;
  generation_ = announce.generation;
  preparing_ = false;
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
  if (quiet_missing_ == 0) tell(AgentQuiet{generation_});
}

void HostAgent::on(const Quiet& quiet) {
  if (quiet.generation != generation_) return;
  HOLMES_ASSERT(quiet_missing_ > 0, "more actors are quiet than were told to be");
  if (--quiet_missing_ == 0) tell(AgentQuiet{generation_});
}

void HostAgent::on(const AgentStop& stop) {
  if (stop.generation != generation_) return;
  for (auto& device : devices_)
    if (device.replica) caf::anon_send(device.replica->handle(), StopRequested{generation_});
}

// --- from peers and own actors ---

void HostAgent::on(const ControlArrived& arrived) {
  auto message = decode(arrived.message);
  if (!message)
    return log().warning("host " + std::to_string(arrived.from.value()) + " sent " +
                         message.error().message());
  const auto deliver = [this](DeviceId to, auto&& value) {
    for (auto& device : devices_)
      if (device.id == to && device.replica)
        caf::anon_send(device.replica->handle(), std::forward<decltype(value)>(value));
  };
  if (auto* vote = std::get_if<Vote>(&*message); vote != nullptr && may_send(arrived.from, *vote))
    deliver(vote->to, std::move(*vote));
  else if (auto* commit = std::get_if<Commit>(&*message);
           commit != nullptr && may_send(arrived.from, *commit))
    deliver(commit->to, std::move(*commit));
  else if (!std::holds_alternative<Heartbeat>(*message))  // those only show that the link works
    log().warning("host " + std::to_string(arrived.from.value()) +
                  " sent a message that is not its to send");
}

/// Votes come from the host of the voter, commits from the host above in the vote tree.
bool HostAgent::may_send(HostId host, const Vote& vote) const {
  return cluster_ != nullptr && vote.from.index() < cluster_->device_count() &&
         cluster_->host_of(vote.from) == host;
}

bool HostAgent::may_send(HostId host, const Commit& commit) const {
  if (routes_ == nullptr || !routes_->is_local(commit.to)) return false;
  const auto above = vote_parent(routes_->plan(), commit.to);
  return above && cluster_->host_of(*above) == host;
}

void HostAgent::on(const LinkLost& lost) {
  links_up_.erase({lost.nic, lost.peer});
  if (over_ || !links_needed_.contains({lost.nic, lost.peer})) return;
  report_failure({generation_, true, lost.peer,
                  cluster_->hosts[host_.index()].nics[lost.nic.index()].name, "", lost.error});
}

void HostAgent::on(const MemberFailed& failed) {
  if (failed.generation != generation_) return;
  report_failure({generation_, false, {}, "", failed.operation, failed.error});
}

// --- to the coordinator ---

void HostAgent::tell(const ControlMessage& message) {
  if (!coordinator_ || over_) return;
  coordinator_->send_control(BufferView(encode(message)), [](const Status&) {});
}

void HostAgent::report_failure(FailureReport report) {
  log().error(report.operation + (report.operation.empty() ? "" : ": ") + report.error.message());
  tell(report);
}

void HostAgent::watch_coordinator() {
  const Duration period = std::chrono::milliseconds(job_.resilience.heartbeat_ms);
  coordinator_silence_max_ = std::max(kCoordinatorSilenceMin, kCoordinatorHeartbeats * period);
  pauses_.emplace(period, coordinator_silence_max_, clock().now());
}

bool HostAgent::is_coordinator_silent() {
  const TimePoint now = clock().now();
  if (pauses_->tick(now)) coordinator_heard_ = now;
  return now - coordinator_heard_ > coordinator_silence_max_;
}

void HostAgent::beat() {
  if (is_coordinator_silent())
    return end(true, "the coordinator is gone: no sign of life for " +
                         std::to_string(coordinator_silence_max_ / std::chrono::seconds(1)) + " s");
  Heartbeat heartbeat;
  for (const auto& [nic, counted] : traffic_)
    heartbeat.nics.push_back({nic, counted.bytes_sent, counted.bytes_received});
  tell(heartbeat);
  beat_timer_ = executor().post_after(std::chrono::milliseconds(job_.resilience.heartbeat_ms),
                                      guarded([this] { beat(); }));
}

void HostAgent::end(bool failed, std::string reason) {
  if (over_) return;
  over_ = true;
  executor().cancel(beat_timer_);
  ended_({failed, std::move(reason)});
}

}  // namespace holmes::actors
