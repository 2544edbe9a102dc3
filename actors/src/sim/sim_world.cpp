#include "sim/sim_world.hpp"

#include "text_batches.hpp"

namespace holmes::actors {

namespace {

constexpr double kControlGbitS = 1.0;
constexpr Duration kControlLatency = std::chrono::microseconds(100);
constexpr double kAsModelled = 1;
constexpr const char* kControlFabric = "control";
constexpr const char* kCoordinatorNic = "coordinator/control";

std::string nic_name(const partition::Cluster& cluster, HostId host, NicId nic) {
  const auto& of = cluster.hosts.at(host.index());
  return of.name + "/" + of.nics.at(nic.index()).name;
}

std::string control_nic(const partition::Cluster& cluster, HostId host) {
  return cluster.hosts.at(host.index()).name + "/control";
}

}  // namespace

/// A compute queue in virtual time: one operator at a time, by priority; the work runs inline at
/// the end of its modelled time. As on a real machine some operators take longer, and a few very
/// much longer, since something else has the core: which ones is drawn from the seed.
class SimWorld::Queue final : public ComputeQueue {
 public:
  /// `slowness`: how many times longer everything takes.
  Queue(Executor& executor, std::uint64_t seed, const double& slowness)
      : executor_(executor), random_(seed), slowness_(slowness) {}

  void submit(ComputePriority priority, Duration modelled, Task work, Executor& home,
              Task done) override {
    jobs_[static_cast<std::size_t>(priority)].push_back(
        {modelled, std::move(work), &home, std::move(done)});
    if (!busy_) next();
  }

 private:
  struct Job {
    Duration modelled;
    Task work;
    Executor* home;
    Task done;
  };

  void next() {
    for (auto& queue : jobs_) {
      if (queue.empty()) continue;
      busy_ = true;
      auto job = std::make_shared<Job>(std::move(queue.front()));
      queue.pop_front();
      executor_.post_after(disturbed(job->modelled),
                           [this, alive = std::weak_ptr<bool>(alive_), job] {
                             if (alive.expired()) return;
                             job->work();
                             job->work = {};
                             busy_ = false;
                             job->home->post(std::move(job->done));
                             next();
                           });
      return;
    }
  }

  Duration disturbed(Duration modelled) {
    modelled = from_seconds(seconds(modelled) * slowness_);
    if (random_.chance(0.02)) return 100 * modelled + std::chrono::milliseconds(random_.below(20));
    return from_seconds(seconds(modelled) * (1 + random_.uniform()));
  }

  Executor& executor_;
  Random random_;
  const double& slowness_;
  std::array<std::deque<Job>, 3> jobs_;
  bool busy_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class SimWorld::Host final : public HostEnvironment {
 public:
  Host(SimWorld& world, HostId id) : world_(world), id_(id), strand_(world.loop_.make_strand()) {
    control_ = world.network_.make_context(control_nic(world.job_.job.cluster, id), strand_);
    agent_ = std::make_unique<HostAgent>(
        world.runtime_.system(), Logger(), world.job_.job.cluster.hosts.at(id.index()).name, "sim",
        *this, [this](AgentEnd end) { world_.ends_[id_] = std::move(end); });
    agent_->start();
    agent_->join({world.coordinator_address_});
  }

  void kill() {
    for (auto* strand : member_strands_) world_.loop_.retire(*strand);
    world_.loop_.retire(strand_);
  }

  void leave() { caf::anon_send(agent_->handle(), LeaveAsked{}); }
  void slow_down(double slowness) { slowness_ = slowness; }

  BufferPool::Stats memory() const { return agent_->memory(); }

  Executor& executor() override { return strand_; }
  Executor& member_executor() override {
    auto& strand = world_.loop_.make_strand();
    member_strands_.push_back(&strand);
    return strand;
  }
  transport::Context& control_context() override { return *control_; }
  Result<OpenNic> open_nic(const JobConfig& job, HostId host, NicId nic) override {
    const std::string name = nic_name(job.cluster, host, nic);
    return OpenNic{world_.network_.make_context(name, strand_), {name}};
  }
  std::unique_ptr<ComputeQueue> open_device(const partition::Device&) override {
    return std::make_unique<Queue>(strand_, seed(), slowness_);
  }
  std::unique_ptr<ComputeQueue> open_disk() override {
    return std::make_unique<Queue>(strand_, seed(), slowness_);
  }
  Result<std::unique_ptr<model::Engine>> make_engine(const JobConfig&, const partition::Device&,
                                                     std::uint32_t) override {
    return model::make_reference_engine();
  }
  Result<std::unique_ptr<BatchSource>> open_batches(const JobConfig& job) override {
    return make_text_batches(job, world_.text_);
  }
  Result<std::unique_ptr<StateStore>> open_store(const JobConfig&) override {
    return std::unique_ptr<StateStore>(std::make_unique<SharedStore>(*world_.store_));
  }
  PassObserver pass_observer() override {
    return [this](StageIndex stage, Step step, const ProgramPass& pass) {
      world_.passes_.push_back({id_, stage, step, pass, world_.loop_.now()});
    };
  }

 private:
  /// Every host has the one store of the world.
  class SharedStore final : public StateStore {
   public:
    explicit SharedStore(MemoryStore& store) : store_(store) {}
    Status load(const std::string& folder, std::span<const LayerState> layers) override {
      return store_.load(folder, layers);
    }
    Result<std::vector<SavedFile>> save(const SaveRequest& request) override {
      return store_.save(request);
    }
    Result<std::string> publish(Step step, const std::vector<SavedFile>& files) override {
      return store_.publish(step, files);
    }

   private:
    MemoryStore& store_;
  };

  std::uint64_t seed() { return mix64(world_.job_.seed * 1000 + id_.value() * 10 + queues_++); }

  SimWorld& world_;
  HostId id_;
  double slowness_ = kAsModelled;
  std::uint64_t queues_ = 0;
  Executor& strand_;
  std::vector<Executor*> member_strands_;
  std::unique_ptr<transport::Context> control_;
  std::unique_ptr<HostAgent> agent_;
};

SimWorld::SimWorld(SimJob job)
    : loop_(job.seed),
      network_(loop_, job.seed),
      job_(std::move(job)),
      store_(job_.store != nullptr ? job_.store : &own_store_) {
  const auto& cluster = job_.job.cluster;
  auto text = open_text(job_.job);
  HOLMES_ASSERT(text, text.error().message().c_str());
  text_ = *text;
  for (const auto& fabric : cluster.fabrics)
    network_.add_fabric(fabric.name, fabric.gbit_s, from_seconds(fabric.latency_us * 1e-6));
  network_.add_fabric(kControlFabric, kControlGbitS, kControlLatency);
  network_.add_nic(kCoordinatorNic, kControlFabric);
  for (std::uint32_t host = 0; host < cluster.hosts.size(); ++host) {
    network_.add_nic(control_nic(cluster, HostId(host)), kControlFabric);
    for (std::uint32_t nic = 0; nic < cluster.hosts[host].nics.size(); ++nic) {
      const auto& about = cluster.hosts[host].nics[nic];
      network_.add_nic(nic_name(cluster, HostId(host), NicId(nic)),
                       cluster.fabrics[about.fabric.index()].name, about.gbit_s);
    }
  }

  CoordinatorSpec spec;
  spec.job = job_.job;
  spec.job_name = "sim";
  auto plan =
      partition::plan(cluster, model_cost(job_.job), job_.job.train.shape, job_.job.parallel);
  HOLMES_ASSERT(plan, plan.error().message().c_str());
  spec.plan = *std::move(plan);
  spec.data_hash = text_->hash();
  spec.first_step = job_.first_step;
  if (job_.first_step.value() > 0) spec.checkpoint = MemoryStore::folder(job_.first_step);
  auto& strand = loop_.make_strand();
  coordinator_context_ = network_.make_context(kCoordinatorNic, strand);
  coordinator_disk_ = std::make_unique<Queue>(strand, job_.seed, kAsModelled);
  coordinator_ = std::make_unique<Coordinator>(
      runtime_.system(), Logger(), std::move(spec),
      CoordinatorResources{*coordinator_context_, *store_, *coordinator_disk_,
                           [this](const Event& event) { events_.push_back(event); },
                           [this](Outcome outcome) { outcome_ = outcome; }});
  coordinator_->start();
  const auto address = coordinator_->listen({kCoordinatorNic});
  HOLMES_ASSERT(address, address.error().message().c_str());
  coordinator_address_ = *address;
  for (std::uint32_t host = 0; host < cluster.hosts.size(); ++host)
    hosts_.push_back(std::make_unique<Host>(*this, HostId(host)));
}

SimWorld::~SimWorld() = default;

Result<Outcome> SimWorld::run(Duration limit) {
  if (!run_until([] { return false; }, limit))
    return Error(ErrorCode::kTimeout, "the job was not over in time");
  // Agents leave a moment after the coordinator has let them go, or a minute after its last word.
  loop_.run_until([this] { return ends_.size() + killed_.size() >= hosts_.size(); },
                  std::chrono::seconds(90));
  return *outcome_;
}

bool SimWorld::run_until(const std::function<bool()>& when, Duration limit) {
  return loop_.run_until([&] { return outcome_.has_value() || when(); }, limit);
}

BufferPool::Stats SimWorld::memory(HostId host) const {
  return hosts_.at(host.index())->memory();
}

void SimWorld::request_stop() {
  caf::anon_send(coordinator_->handle(), StopJob{});
}

void SimWorld::leave(HostId host) {
  hosts_[host.index()]->leave();
}

void SimWorld::slow_down(HostId host, double slowness) {
  hosts_[host.index()]->slow_down(slowness);
}

void SimWorld::revive(HostId host) {
  if (!killed_.contains(host)) kill(host);  // a process that has ended has no sockets
  killed_.erase(host);
  ends_.erase(host);
  network_.revive_host(job_.job.cluster.hosts[host.index()].name);
  former_hosts_.push_back(std::move(hosts_[host.index()]));
  hosts_[host.index()] = std::make_unique<Host>(*this, host);
}

void SimWorld::kill(HostId host, bool silent) {
  killed_.insert(host);
  hosts_[host.index()]->kill();
  network_.kill_host(job_.job.cluster.hosts[host.index()].name, silent);
}

}  // namespace holmes::actors
