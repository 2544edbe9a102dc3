#include "host_agent.hpp"

#include <unistd.h>
#include <algorithm>

namespace holmes::actors {

namespace {

constexpr Duration kDialDeadline = std::chrono::seconds(10);
constexpr Duration kLinkDialMin = std::chrono::seconds(1);
constexpr Duration kDialAgain = std::chrono::milliseconds(250);
/// A coordinator that is silent for so long will not come back. It may well be stopped for a while
/// (a debugger, a terminal): training does not need it.
constexpr Duration kCoordinatorSilenceMin = std::chrono::seconds(60);
constexpr int kCoordinatorHeartbeats = 4;
constexpr Duration kTrafficReportMax = std::chrono::milliseconds(250);

}  // namespace

HostAgent::HostAgent(caf::actor_system& system, Logger log, std::string host, std::string job,
                     HostEnvironment& environment, std::function<void(AgentEnd)> ended)
    : ExecutorActor(system, environment.executor(), std::move(log)),
      host_name_(std::move(host)),
      job_name_(std::move(job)),
      system_(system),
      environment_(environment),
      ended_(std::move(ended)) {}

HostAgent::~HostAgent() {
  executor().cancel(dial_timer_);
  executor().cancel(beat_timer_);
  if (coordinator_) coordinator_->close();
  for (auto& device : devices_) device.queue.reset();  // joins: no operator runs any more
  disk_.reset();
}

caf::behavior HostAgent::make_behavior() {
  return {
      [this](const ControlArrived& arrived) { on(arrived); },
      [this](const LinkUp& up) { on(up); },
      [this](const LinkLost& lost) { on(lost); },
      [this](const TrafficCounted& counted) { traffic_[counted.nic] = counted; },
      [this](const StepTimed& timed) { slowness_[timed.device] = timed.slowness; },
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
      [this](const LeaveAsked&) { ask_to_leave(); },
  };
}

// --- joining ---

void HostAgent::join(const transport::Endpoint& coordinator, Duration patience) {
  dial(coordinator, clock().now() + patience);
}

void HostAgent::dial(const transport::Endpoint& coordinator, TimePoint until) {
  const transport::Identity self{job_name_, kNoHost, kControlNic, Epoch(0), host_name_};
  environment_.control_context().connect(
      coordinator, self, kDialDeadline,
      guarded([this, coordinator, until](Result<std::shared_ptr<transport::Connection>> made) {
        if (over_) return;
        if (made) return connected(*std::move(made));
        const bool nobody_there = made.error().code() == ErrorCode::kUnavailable;
        if (!nobody_there || clock().now() >= until)
          return end(true, "host " + host_name_ + " cannot join the job at " + coordinator.address +
                               ": " + made.error().message());
        dial_timer_ = executor().post_after(
            kDialAgain, guarded([this, coordinator, until] { dial(coordinator, until); }));
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
                      std::is_same_v<T, AgentStop> || std::is_same_v<T, TryLink>) {
          if (is_in_force(value.epoch)) on(value);
        } else if constexpr (std::is_same_v<T, TurnedAway>) {
          end(true, "host " + host_name_ + " was turned away: " + value.reason);
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
  host_ = welcome.host;
  if (const auto opened = open(welcome); !opened)
    return report_failure({generation_, false, {}, "", "starting", opened.error()});
  Join join{host_, static_cast<std::uint32_t>(::getpid()), {}, ""};
  for (std::uint32_t nic = 0; nic < nics_.size(); ++nic) {
    if (opened_[nic].at.address.empty()) continue;
    auto address = nics_[nic]->listen(opened_[nic].at);
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
  whole_cluster_ = job_.cluster;
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
  HOLMES_TRY(open_devices());
  return open_nics();
}

/// Those with memory of their own have a pool of it; the others share one.
Status HostAgent::open_devices() {
  const auto& host = cluster_->hosts[host_.index()];
  std::uint32_t number = 0;  // of the host's first device in the cluster
  for (std::uint32_t i = 0; i < host_.index(); ++i)
    number += static_cast<std::uint32_t>(cluster_->hosts[i].devices.size());
  std::uint32_t gpus = 0;
  double shared_gib = 0;
  const auto bytes = [](double gib) {
    return static_cast<std::size_t>(gib * static_cast<double>(kGiB));
  };
  for (const auto& item : host.devices) {
    auto engine = environment_.make_engine(job_, item, item.is_gpu() ? gpus++ : 0);
    if (!engine) return engine.error().in("host " + host.name);
    HOLMES_TRY((*engine)->supports(job_.model));
    std::shared_ptr<BufferPool> pool;
    std::shared_ptr<BufferPool> payloads;
    if (auto memory = (*engine)->memory())
      pool = std::make_shared<BufferPool>(bytes(item.memory_gib), std::move(memory));
    else
      shared_gib += item.memory_gib;
    if (auto memory = (*engine)->payload_memory())
      payloads = std::make_shared<BufferPool>(bytes(item.memory_gib), std::move(memory));
    devices_.push_back({DeviceId(number++),
                        environment_.open_device(item),
                        *std::move(engine),
                        std::move(pool),
                        std::move(payloads),
                        nullptr,
                        nullptr,
                        {}});
  }
  pool_ = std::make_shared<BufferPool>(bytes(shared_gib));
  for (auto& device : devices_) {
    if (device.pool == nullptr) device.pool = pool_;
    if (device.payloads == nullptr) device.payloads = device.pool;
  }
  return {};
}

BufferPool::Stats HostAgent::memory() const {
  BufferPool::Stats sum;
  std::set<const BufferPool*> counted;
  for (const auto& device : devices_)
    for (const auto* pool : {device.pool.get(), device.payloads.get()}) {
      if (pool == nullptr || !counted.insert(pool).second) continue;
      const auto stats = pool->stats();
      sum.bytes_held += stats.bytes_held;
      sum.bytes_lent += stats.bytes_lent;
      sum.buffers_lent += stats.buffers_lent;
      sum.allocation_count += stats.allocation_count;
    }
  return sum;
}

Status HostAgent::open_nics() {
  const auto count = cluster_->hosts[host_.index()].nics.size();
  for (std::uint32_t nic = 0; nic < count; ++nic) HOLMES_TRY(open_nic(NicId(nic)));
  return {};
}

Status HostAgent::open_nic(NicId nic) {
  const auto& host = cluster_->hosts[host_.index()];
  HOLMES_TRY_ASSIGN(auto opened, environment_.open_nic(job_, host_, nic));
  opened_.push_back(std::move(opened));
  const std::string name = host.name + "/" + host.nics[nic.index()].name;
  const Duration silence_max = std::chrono::milliseconds(job_.resilience.timeout_ms);
  NicSpec spec{{job_name_, host_, nic, Epoch(0)},
               name,
               std::clamp<Duration>(silence_max, kLinkDialMin, kDialDeadline),
               std::min(kTrafficReportMax, silence_max / 4),
               silence_max};
  nics_.push_back(std::make_unique<Nic>(system_, log().named("nic " + name), std::move(spec),
                                        *opened_.back().context, handle()));
  nics_.back()->start();
  return {};
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

void HostAgent::on(const LinkUp& up) {
  links_up_.emplace(up.nic, up.peer);
  if (links_tried_.erase({up.nic, up.peer}) > 0) tell(LinkWorks{up.nic, up.peer});
  ready_when_complete();
}

void HostAgent::on(const TryLink& link) {
  if (link.nic.index() >= nics_.size() || link.peer.index() >= whole_cluster_.hosts.size())
    return log().warning("a link that there cannot be was not tried");
  links_tried_.emplace(link.nic, link.peer);
  caf::anon_send(nics_[link.nic.index()]->handle(), OpenLink{link.peer, link.address});
}

void HostAgent::on(const LinkLost& lost) {
  links_up_.erase({lost.nic, lost.peer});
  links_tried_.erase({lost.nic, lost.peer});
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

void HostAgent::ask_to_leave() {
  if (std::exchange(leaving_, true)) return;
  log().info("asked to leave the job");
  if (coordinator_) return tell(LeaveRequest{});
  end(true, "told to leave before it had joined a job");
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
  for (const auto& [device, slowness] : std::exchange(slowness_, {}))
    heartbeat.devices.push_back({device, slowness});
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
