#include "coordinator.hpp"

#include <algorithm>

namespace holmes::actors {

namespace {

/// A host that peers have lost has this long to be lost by the coordinator too, before the links
/// between them are blamed instead. Both ends of a silent link report within it.
constexpr Duration kSuspicion = std::chrono::milliseconds(750);
/// A step or a save that takes longer is worth a word.
constexpr Duration kStuck = std::chrono::seconds(60);
constexpr std::size_t kSuspicionsMax = 1024;
constexpr Duration kTurnAway = std::chrono::seconds(1);

transport::Identity coordinator_identity(const CoordinatorSpec& spec, Epoch epoch) {
  return {spec.job_name, HostId(0xffffffff), NicId(0xffffffff), epoch, ""};
}

}  // namespace

Coordinator::Coordinator(caf::actor_system& system, Logger log, CoordinatorSpec spec,
                         CoordinatorResources resources)
    : ExecutorActor(system, resources.context.executor(), std::move(log)),
      spec_(std::move(spec)),
      job_(spec_.job),
      resources_(std::move(resources)),
      agents_(spec_.job.cluster.hosts.size()),
      plan_(spec_.plan),
      begun_{spec_.first_step, spec_.checkpoint},
      table_(std::make_shared<const std::vector<LayerTable>>(model_table(spec_.job.model))),
      last_step_at_(clock().now()),
      adapter_({.gain_min = spec_.job.resilience.adapt_gain}),
      moved_(clock().now()),
      pauses_(std::chrono::milliseconds(spec_.job.resilience.heartbeat_ms),
              std::chrono::milliseconds(spec_.job.resilience.timeout_ms), clock().now()) {
  if (spec_.first_step.value() > 0) last_committed_ = Step(spec_.first_step.value() - 1);
}

Coordinator::~Coordinator() {
  executor().cancel(deadline_);
  executor().cancel(watch_timer_);
  for (auto& [nic, lost] : lost_nics_) executor().cancel(lost.timer);
  for (auto& agent : agents_)
    if (agent.connection) agent.connection->close();
}

caf::behavior Coordinator::make_behavior() {
  return {
      [this](const StopJob&) { stop_requested(); },
      [this](const AgentStarted& started) {
        resources_.on_event(HostStarted{started.host, name(started.host), started.process});
      },
      [this](const AgentExited& exited) { this->exited(exited); },
  };
}

Result<std::string> Coordinator::listen(const transport::Endpoint& at) {
  HOLMES_TRY_ASSIGN(
      listener_,
      resources_.context.listen(
          at, coordinator_identity(spec_, epoch_),
          guarded([this](std::shared_ptr<transport::Connection> connection) {
            accepted(std::move(connection));
          }),
          guarded([this](const Error& error) { refusals_.write(log(), clock().now(), error); })));
  set_deadline(spec_.join_deadline, [this] { lose_who_did_not_join(); });
  watch();
  return listener_->endpoint().address;
}

void Coordinator::lose_who_did_not_join() {
  std::optional<HostId> first;
  std::string others;
  for (std::uint32_t host = 0; host < agents_.size(); ++host) {
    if (agents_[host].joined) continue;
    if (first) others += (others.empty() ? ", nor did " : ", ") + name(HostId(host));
    if (!first) first = HostId(host);
  }
  if (!first) return;
  const auto seconds_waited = std::to_string(spec_.join_deadline / std::chrono::seconds(1));
  lose(*first, "joining",
       Error(ErrorCode::kTimeout, "it did not join within " + seconds_waited + " s" + others));
}

// --- agents ---

void Coordinator::accepted(std::shared_ptr<transport::Connection> connection) {
  if (leaving()) return connection->close();  // it was on its way when the job ended
  const std::string& name = connection->peer().host_name;
  const auto& hosts = spec_.job.cluster.hosts;
  const auto at =
      std::find_if(hosts.begin(), hosts.end(), [&](const auto& host) { return host.name == name; });
  if (at == hosts.end())
    return turn_away(std::move(connection), "the job has no host of that name");
  const HostId host(static_cast<std::uint32_t>(at - hosts.begin()));
  if (may_come(host)) return greet(host, std::move(connection));
  turn_away(std::move(connection), "another agent serves that host already");
}

/// It is told why, and has a moment to hear it.
void Coordinator::turn_away(std::shared_ptr<transport::Connection> connection,
                            const std::string& reason) {
  log().warning("an agent that says it is host \"" + connection->peer().host_name +
                "\" was turned away: " + reason);
  connection->on_control([](const Buffer&) {});
  connection->on_closed([](const Error&) {});
  connection->send_control(BufferView(encode(TurnedAway{reason})), [](const Status&) {});
  executor().post_after(kTurnAway, [connection] { connection->close(); });
}

void Coordinator::from_agent(HostId host, const Buffer& bytes) {
  if (phase_ == Phase::kOver || agents_[host.index()].gone) return;
  agents_[host.index()].last_heard = clock().now();
  const auto message = decode(bytes);
  if (!message) return lose(host, running_operation(), message.error());
  std::visit(
      [this, host](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Join> || std::is_same_v<T, AgentReady> ||
                      std::is_same_v<T, AgentQuiet> || std::is_same_v<T, StepReport> ||
                      std::is_same_v<T, ValidationReport> || std::is_same_v<T, SaveReport> ||
                      std::is_same_v<T, Heartbeat> || std::is_same_v<T, FailureReport> ||
                      std::is_same_v<T, LeaveRequest> || std::is_same_v<T, LinkWorks>)
          on(host, value);
        else
          log().warning(name(host) + " sent a message that only a coordinator may send");
      },
      *message);
}

void Coordinator::on(HostId host, const Join& join) {
  auto& agent = agents_[host.index()];
  if (agent.joined) return;
  if (join.host != host) return refuse(host, "a join in the name of another host");
  agent.joined = true;
  agent.nics = join.nics;
  log().info("host " + name(host) + " joined");
  if (phase_ != Phase::kJoining) return change_members();
  agent.member = true;
  if (!std::all_of(agents_.begin(), agents_.end(), [](const Agent& a) { return a.member; })) return;
  generation_ = Generation(generation_.value() + 1);
  prepare({{}, {}, begun_.step, {}, {}, begun_.folder});
}

/// Sends the plan in force to every member that is left, each with its own part of the transfers.
void Coordinator::prepare(Prepare order) {
  phase_ = Phase::kPreparing;
  order.epoch = epoch_;
  order.generation = generation_;
  order.plan = plan_;
  order.nics_down = nics_down();
  first_step_ = order.first_step;
  for (const auto& agent : agents_)
    if (agent.member && !agent.gone)
      order.addresses.insert(order.addresses.end(), agent.nics.begin(), agent.nics.end());
  set_deadline(spec_.prepare_deadline, [this] {
    for (std::uint32_t host = 0; host < agents_.size(); ++host)
      if (agents_[host].member && !agents_[host].gone && !agents_[host].ready)
        return lose(HostId(host), "preparing",
                    Error(ErrorCode::kTimeout, "it was not ready in time"));
  });
  const auto& cluster = spec_.job.cluster;
  const auto transfers = std::exchange(order.transfers, {});
  for (std::uint32_t host = 0; host < agents_.size(); ++host) {
    if (!agents_[host].member) continue;
    auto own = order;
    for (const auto& transfer : transfers)
      if (cluster.host_of(transfer.source) == HostId(host) ||
          cluster.host_of(transfer.destination) == HostId(host))
        own.transfers.push_back(transfer);
    tell(HostId(host), own);
  }
}

void Coordinator::on(HostId host, const AgentReady& ready) {
  if (phase_ != Phase::kPreparing || ready.generation != generation_) return;
  agents_[host.index()].ready = true;
  if (!all(&Agent::ready)) return;
  phase_ = Phase::kTraining;
  executor().cancel(deadline_);
  if (regrouping_) regrouping_->report.move = phase_duration();
  last_step_at_ = moved_ = clock().now();
  adapter_.begin();
  resources_.on_event(PlanInForce{generation_, first_step_, plan_});
  tell_members(AgentGo{epoch_, generation_});
  dismiss_leavers();
  if (stop_requested_ && !stopped_after_) tell_members(AgentStop{epoch_, generation_});
  if (regrouping_ && (stopped_after_ || first_step_.value() == spec_.job.train.steps)) regrouped();
  end_when_done();
}

void Coordinator::on(HostId, const StepReport& report) {
  if (phase_ != Phase::kTraining || report.generation != generation_) return;
  committed({report.step, report.gradient_norm, report.loss, report.stop});
  if (regrouping_) regrouped();
  change_members();
  adapt();
}

void Coordinator::committed(const CommittedStep& step) {
  const auto& job = spec_.job;
  StepFinished event;
  event.step = step.step;
  event.loss = step.loss;
  event.gradient_norm = step.gradient_norm;
  event.learning_rate =
      static_cast<double>(model::learning_rate(job.train.learning_rate, step.step.value()));
  event.duration = clock().now() - last_step_at_;
  event.tokens = std::uint64_t{job.train.shape.batch} * job.train.sequence;
  for (std::uint32_t host = 0; host < agents_.size(); ++host)
    for (const auto& [nic, counted] : agents_[host].traffic)
      event.traffic.push_back({HostId(host), job.cluster.hosts[host].nics.at(nic.index()).name,
                               counted.bytes_sent, counted.bytes_received});
  adapter_.step_took(event.duration);
  last_step_at_ = moved_ = clock().now();
  last_commit_ = step;
  last_committed_ = step.step;
  relinks_ = 0;
  if (step.stop) stopped_after_ = step.step;
  resources_.on_event(std::move(event));
}

void Coordinator::on(HostId host, const ValidationReport& report) {
  if (phase_ != Phase::kTraining || report.generation != generation_) return;
  if (report.index >= spec_.job.data.validation_batches)
    return refuse(host, "the loss of a validation micro-batch that there is not");
  moved_ = clock().now();
  if (validated_ && *validated_ >= report.step) return;  // before a host was lost
  auto& losses = validations_[report.step];
  losses[report.index] = report.loss;
  if (losses.size() < spec_.job.data.validation_batches) return;
  double sum = 0;
  for (const auto& [index, loss] : losses) sum += static_cast<double>(loss);
  resources_.on_event(ValidationFinished{report.step, sum / static_cast<double>(losses.size())});
  validations_.erase(report.step);
  validated_ = report.step;
  end_when_done();
}

void Coordinator::on(HostId host, const SaveReport& report) {
  if (phase_ != Phase::kTraining || report.generation != generation_) return;
  const auto members = plan_.members();
  if (std::find(members.begin(), members.end(), report.device) == members.end())
    return refuse(host, "files of a device that does not train");
  auto& parts = saves_[report.step];
  parts[report.device] = report.files;
  if (parts.size() < members.size()) return;
  auto files = std::make_shared<std::vector<SavedFile>>();
  for (auto& [device, written] : parts) files->insert(files->end(), written.begin(), written.end());
  saves_.erase(report.step);
  publishing_ = report.step;
  auto folder = std::make_shared<Result<std::string>>(std::string());
  resources_.disk.submit(
      ComputePriority::kPass, {},
      [&store = resources_.store, step = report.step, files, folder] {
        *folder = store.publish(step, *files);
      },
      executor(), guarded([this, step = report.step, folder] { published(step, *folder); }));
}

void Coordinator::published(Step step, Result<std::string> folder) {
  publishing_.reset();
  if (!folder)
    return fail(incident("", "publishing the checkpoint of step " + std::to_string(step.value()),
                         folder.error()));
  saved_ = step;
  published_ = Checkpoint{step, *folder};
  moved_ = clock().now();
  resources_.on_event(CheckpointSaved{step, *folder});
  end_when_done();
}

void Coordinator::on(HostId host, const Heartbeat& heartbeat) {
  const auto nic_count = spec_.job.cluster.hosts[host.index()].nics.size();
  for (const auto& nic : heartbeat.nics)
    if (nic.nic.index() < nic_count) agents_[host.index()].traffic[nic.nic] = nic;
  const auto& cluster = spec_.job.cluster;
  for (const auto& [device, slowness] : heartbeat.devices)
    if (device.index() < cluster.device_count() && cluster.host_of(device) == host)
      adapter_.heard(device, slowness);
}

/// What an agent cannot mend. A lost link may mean that the peer is gone: then its own connection
/// says so within a moment, and it is the one to be named.
void Coordinator::on(HostId host, const FailureReport& report) {
  if (leaving()) return;
  if (!agents_[host.index()].member && phase_ != Phase::kJoining)
    return lose(host, "joining", report.error);
  if (report.generation != generation_) return;
  if (!report.has_peer || report.peer.index() >= agents_.size()) {
    auto what =
        incident(name(host), report.operation.empty() ? running_operation() : report.operation,
                 report.error);
    what.nic = report.nic;
    return fail(std::move(what));
  }
  if (agents_[report.peer.index()].gone || suspicions_.size() == kSuspicionsMax) return;
  suspicions_.push_back({host, report});
  if (suspicions_.size() > 1) return;
  executor().post_after(kSuspicion, guarded([this, generation = generation_] {
                          if (generation == generation_) links_lost();
                        }));
}

/// The host that has lost links to more peers than any other is at fault. Where two hosts have lost
/// each other and nobody else, the link is all that is known.
Coordinator::Blame Coordinator::blame() const {
  std::map<HostId, std::set<HostId>> lost;
  for (const auto& [reporter, report] : suspicions_) {
    lost[reporter].insert(report.peer);
    lost[report.peer].insert(reporter);
  }
  std::size_t most = 0;
  std::vector<HostId> worst;
  for (const auto& [host, peers] : lost) {
    if (peers.size() > most) worst.clear();
    most = std::max(most, peers.size());
    if (peers.size() == most) worst.push_back(host);
  }
  const bool known = worst.size() == 1;
  const auto shown = std::find_if(
      suspicions_.begin(), suspicions_.end(),
      [&](const Suspicion& suspicion) { return !known || suspicion.reporter == worst[0]; });
  const auto& [reporter, report] = shown == suspicions_.end() ? suspicions_[0] : *shown;
  auto what = incident(known ? name(worst[0]) : "", running_operation(),
                       report.error.in("the link from host " + name(reporter) + " by its NIC " +
                                       report.nic + " to host " + name(report.peer) + " is lost"));
  if (!known)
    what.nic = name(reporter) + "/" + report.nic;
  else if (reporter == worst[0])
    what.nic = report.nic;
  return {known ? std::optional(worst[0]) : std::nullopt, std::move(what)};
}

// --- members that go ---

void Coordinator::connection_lost(HostId host, const Error& error) {
  auto& agent = agents_[host.index()];
  agent.connection.reset();
  const bool known = std::exchange(agent.gone, true);
  if (leaving()) return left();
  if (!known) lose(host, running_operation(), error);
}

void Coordinator::exited(const AgentExited& exited) {
  const auto& agent = agents_[exited.host.index()];
  if (agent.life > 0 && !agent.member && !agent.gone && phase_ != Phase::kJoining)
    return;  // the agent before the one that is on its way
  if (exited.failed && is_heard_of(exited.host))
    return log().warning("host " + name(exited.host) + ": what started its agent ended with " +
                         exited.how + "; the agent itself is alive");
  const bool known = std::exchange(agents_[exited.host.index()].gone, true);
  if (leaving()) return left();
  if (!known)
    lose(exited.host, running_operation(),
         Error(ErrorCode::kClosed, "its agent ended with " + exited.how));
  else if (exited.failed)
    log().warning("host " + name(exited.host) + ": its agent ended with " + exited.how +
                  "; see its log");
}

/// An agent that is a process here loses its connection when it dies, before or just after that is
/// seen. One that ssh started may outlive its ssh.
bool Coordinator::is_heard_of(HostId host) const {
  const auto& agent = agents_[host.index()];
  return spec_.agents_are_remote && agent.connection && !agent.gone;
}

/// A host that goes while the job ends is no failure.
void Coordinator::left() {
  dismiss_when_quiet();
  over_when_left();
}

void Coordinator::lose(HostId host, std::string operation, Error cause) {
  lose(host, incident(name(host), std::move(operation), std::move(cause)));
}

void Coordinator::fail(Incident incident) {
  if (leaving()) return;
  resources_.on_event(incident);
  end(Outcome::kFailed);
}

/// What an agent of this program never sends.
void Coordinator::refuse(HostId host, const char* what) {
  lose(host, running_operation(), Error(ErrorCode::kCorrupt, std::string("it sent ") + what));
}

/// A silent host is lost: heartbeats come however busy its devices are. Agents in turn hear that
/// this one is alive.
void Coordinator::watch() {
  const Duration limit = std::chrono::milliseconds(spec_.job.resilience.timeout_ms);
  if (pauses_.tick(clock().now()))
    for (auto& agent : agents_) agent.last_heard = clock().now();
  if (phase_ == Phase::kPreparing || phase_ == Phase::kTraining || phase_ == Phase::kAgreeing)
    for (std::uint32_t host = 0; host < agents_.size(); ++host)
      if (const auto& agent = agents_[host];
          agent.connection && !agent.gone && clock().now() - agent.last_heard > limit) {
        lose(HostId(host), running_operation(),
             Error(
                 ErrorCode::kTimeout,
                 "no sign of life for " + std::to_string(spec_.job.resilience.timeout_ms) + " ms"));
        break;
      }
  warn_when_stuck();
  tell_all(Heartbeat{});
  watch_timer_ = executor().post_after(std::chrono::milliseconds(spec_.job.resilience.heartbeat_ms),
                                       guarded([this] { watch(); }));
}

/// How long a step, a save or a validation may take nobody knows, so that training has no deadline:
/// it is said instead that nothing moves.
void Coordinator::warn_when_stuck() {
  if (phase_ != Phase::kTraining || clock().now() - moved_ < kStuck) return;
  moved_ = clock().now();
  log().warning(running_operation() + ": nothing has been finished for " +
                std::to_string(kStuck / std::chrono::seconds(1)) +
                " s, though every host is alive; the logs of the hosts may say more");
}

// --- the end ---

void Coordinator::stop_requested() {
  if (stop_requested_) return;
  stop_requested_ = true;
  if (phase_ == Phase::kTraining)
    tell_members(AgentStop{epoch_, generation_});
  else if (!leaving() && !regrouping_)
    end(Outcome::kInterrupted);  // nothing has been trained that would have to be saved
}

void Coordinator::end_when_done() {
  if (phase_ != Phase::kTraining) return;
  const auto& job = spec_.job;
  if (stopped_after_ && saved_ == Step(stopped_after_->value() + 1))
    return end(saved_->value() == job.train.steps ? Outcome::kFinished : Outcome::kInterrupted);
  const Step last(job.train.steps);
  const bool validated = job.data.validation_batches == 0 || validated_ == last;
  const bool saved = saved_ == last || spec_.first_step == last;
  if (saved && validated) end(Outcome::kFinished);
}

void Coordinator::end(Outcome outcome) {
  outcome_ = outcome;
  phase_ = Phase::kEnding;
  generation_ = Generation(generation_.value() + 1);
  for (auto& agent : agents_) agent.quiet = false;
  tell_members(Announce{epoch_, generation_});
  set_deadline(spec_.quiet_deadline, [this] {
    for (auto& agent : agents_) agent.quiet = true;
    dismiss_when_quiet();
  });
  dismiss_when_quiet();
}

void Coordinator::on(HostId host, const AgentQuiet& quiet) {
  if (quiet.generation != generation_ || agents_[host.index()].gone) return;
  if (!is_sound(host, quiet)) return refuse(host, "state that it cannot have");
  agents_[host.index()].quiet = true;
  if (phase_ == Phase::kEnding) return dismiss_when_quiet();
  if (phase_ != Phase::kAgreeing) return;
  agents_[host.index()].report = quiet;
  if (all(&Agent::quiet)) resume();
}

/// All members that are left are quiet: the empty plan goes out, and agents leave.
void Coordinator::dismiss_when_quiet() {
  if (phase_ != Phase::kEnding) return;
  for (const auto& agent : agents_)
    if (agent.member && !agent.gone && agent.connection && !agent.quiet) return;
  generation_ = Generation(generation_.value() + 1);
  Prepare nothing;
  nothing.epoch = epoch_;
  nothing.generation = generation_;
  tell_all(nothing);
  phase_ = Phase::kOver;
  set_deadline(spec_.leave_deadline, [this] {
    for (auto& agent : agents_) agent.gone = true;
    over_when_left();
  });
  over_when_left();
}

void Coordinator::over_when_left() {
  if (phase_ != Phase::kOver || !resources_.on_over) return;
  for (const auto& agent : agents_)
    if (!agent.gone && agent.connection) return;
  executor().cancel(deadline_);
  auto over = std::move(resources_.on_over);
  resources_.on_over = nullptr;
  over(outcome_);
}

// --- helpers ---

void Coordinator::tell(HostId host, const ControlMessage& message) {
  auto& agent = agents_[host.index()];
  if (agent.connection && !agent.gone)
    agent.connection->send_control(BufferView(encode(message)), [](const Status&) {});
}

void Coordinator::tell_all(const ControlMessage& message) {
  for (std::uint32_t host = 0; host < agents_.size(); ++host) tell(HostId(host), message);
}

void Coordinator::tell_members(const ControlMessage& message) {
  for (std::uint32_t host = 0; host < agents_.size(); ++host)
    if (agents_[host].member) tell(HostId(host), message);
}

void Coordinator::set_deadline(Duration delay, std::function<void()> expired) {
  executor().cancel(deadline_);
  deadline_ = executor().post_after(delay, guarded(std::move(expired)));
}

bool Coordinator::all(bool Agent::*flag) const {
  return std::all_of(agents_.begin(), agents_.end(), [flag](const Agent& agent) {
    return !agent.member || agent.gone || agent.*flag;
  });
}

std::string Coordinator::name(HostId host) const {
  return spec_.job.cluster.hosts.at(host.index()).name;
}

Incident Coordinator::incident(std::string host, std::string operation, Error cause) const {
  Incident incident;
  incident.host = std::move(host);
  incident.operation = std::move(operation);
  incident.any_committed = last_committed_.has_value();
  incident.last_committed = last_committed_.value_or(Step(0));
  incident.cause = std::move(cause);
  return incident;
}

std::string Coordinator::running_operation() const {
  switch (phase_) {
    case Phase::kJoining:
      return "joining";
    case Phase::kPreparing:
      return "preparing";
    case Phase::kTraining:
      return "step " + std::to_string(last_committed_ ? last_committed_->value() + 1
                                                      : spec_.first_step.value());
    case Phase::kAgreeing:
      return "recovery";
    case Phase::kEnding:
    case Phase::kOver:
      break;
  }
  return "ending";
}

}  // namespace holmes::actors
