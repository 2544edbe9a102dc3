#include "holmes/actors/session.hpp"

#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <future>

#include "actor_runtime.hpp"
#include "agent_restarts.hpp"
#include "coordinator.hpp"
#include "file_store.hpp"
#include "health_board.hpp"
#include "holmes/base/address.hpp"
#include "holmes/base/random.hpp"
#include "holmes/transport/tcp.hpp"
#include "text_batches.hpp"

namespace holmes::actors {

namespace {

std::string how_it_ended(int wait_status) {
  if (WIFSIGNALED(wait_status))
    return "signal " + std::to_string(WTERMSIG(wait_status)) + " (" +
           ::strsignal(WTERMSIG(wait_status)) + ")";
  return "exit code " + std::to_string(WEXITSTATUS(wait_status));
}

/// A name that no other job on this network has: who carries it belongs to this job, or says so
/// where there is no TLS.
std::string new_job_name(const Clock& clock, const std::string& name) {
  const auto ticks = static_cast<std::uint64_t>(clock.now().time_since_epoch().count());
  Random random(mix64(ticks) ^ static_cast<std::uint64_t>(::getpid()));
  return name + "-" + std::to_string(random());
}

/// Where a job starts from.
struct Start {
  Step step;
  std::string checkpoint;
};

Result<Start> find_start(const JobConfig& job, const std::string& data_hash) {
  HOLMES_TRY_ASSIGN(const auto folder, model::find_latest(checkpoint_root(job)));
  HOLMES_TRY_ASSIGN(const auto constants, job_constants(job, data_hash));
  HOLMES_TRY_ASSIGN(const auto checkpoint, model::Checkpoint::open(folder, {&constants, true}));
  return Start{checkpoint.step(), folder.string()};
}

class CoordinatorSession final : public Session {
 public:
  CoordinatorSession(SessionOptions options, CoordinatorSpec spec,
                     std::unique_ptr<StateStore> store, std::shared_ptr<const transport::Tls> tls)
      : options_(std::move(options)),
        spec_(std::move(spec)),
        board_(clock_, spec_.job.cluster, spec_.job.train.steps),
        disk_(std::make_unique<ThreadComputeQueue>(clock_, false)),
        store_(std::move(store)),
        context_(open_context(std::move(tls))),
        outcome_(over_.get_future().share()) {}

  ~CoordinatorSession() override {
    if (options_.starter != nullptr) options_.starter->report_to(nullptr);
    on_loop([this] {
      restarts_.reset();
      coordinator_.reset();
    });
    loop_.stop();
    loop_.join();
    // What a failed save left would keep a full disk full. Nobody may be publishing it any more.
    disk_.reset();
    if (failed()) model::discard_unfinished(checkpoint_root(spec_.job));
  }

  /// Opens the port; on an error nothing has been started.
  Status open() {
    loop_.start();
    Result<std::string> address = std::string();
    on_loop([&] {
      coordinator_ = std::make_unique<Coordinator>(
          runtime_.system(), options_.log.named("coordinator"), spec_,
          CoordinatorResources{*context_, *store_, *disk_,
                               [this](const Event& event) { tell(event); },
                               [this](Outcome outcome) { over(outcome); }});
      coordinator_->start();
      handle_ = coordinator_->handle();
      restarts_ = std::make_unique<AgentRestarts>(loop_, *disk_, options_.log, restart_options());
      const auto& transport = spec_.job.transport;
      address = coordinator_->listen({with_port(transport.listen, transport.port)});
    });
    if (!address) return cannot_listen(address.error());
    address_ = *address;
    return {};
  }

  Status start_agents() {
    if (options_.starter == nullptr) return {};
    options_.starter->report_to(this);
    for (std::uint32_t host = 0; host < spec_.job.cluster.hosts.size(); ++host) {
      HOLMES_TRY_ASSIGN(const int process, start_agent(HostId(host)));
      caf::anon_send(handle_, AgentStarted{HostId(host), process});
    }
    return {};
  }

  void request_stop() override {
    board_.stopping();
    caf::anon_send(handle_, StopJob{});
  }
  Health health() const override { return board_.health(); }
  void agent_exited(HostId host, int wait_status, const std::string& last_words) override {
    const std::string how =
        how_it_ended(wait_status) + (last_words.empty() ? "" : ": " + last_words);
    caf::anon_send(handle_, AgentExited{host, how, wait_status != 0});
    if (wait_status == 0) return;
    loop_.post([this, host] {
      if (restarts_) restarts_->failed(host);
    });
  }
  Outcome wait() override { return outcome_.get(); }

 private:
  std::unique_ptr<transport::Context> open_context(std::shared_ptr<const transport::Tls> tls) {
    transport::TcpOptions options;
    options.logger = options_.log.named("tcp");
    options.tls = std::move(tls);
    return transport::make_tcp_context(loop_, std::move(options));
  }

  Result<int> start_agent(HostId host) {
    const auto& name = spec_.job.cluster.hosts.at(host.index()).name;
    return options_.starter->start({host, name, spec_.job_name, address_});
  }

  AgentRestarts::Options restart_options() {
    AgentRestarts::Options options;
    options.restarts_max = options_.starter == nullptr ? 0 : spec_.job.resilience.restarts;
    options.start = [this](HostId host) { return start_agent(host); };
    options.started = [this](HostId host, int process) {
      caf::anon_send(handle_, AgentStarted{host, process});
    };
    return options;
  }

  void tell(const Event& event) {
    board_.note(event);
    if (options_.on_event) options_.on_event(event);
  }

  void over(Outcome outcome) {
    restarts_->stop();
    board_.over(outcome);
    over_.set_value(outcome);
  }

  bool failed() const {
    return outcome_.wait_for(std::chrono::seconds(0)) == std::future_status::ready &&
           outcome_.get() == Outcome::kFailed;
  }

  Error cannot_listen(const Error& error) const {
    const auto port = spec_.job.transport.port;
    if (port == 0) return error.in("transport.listen = \"" + spec_.job.transport.listen + "\"");
    return Error(ErrorCode::kInvalidArgument,
                 "transport.port = " + std::to_string(port) + ": " + error.message() +
                     "; set another transport.port, or 0 for any free one");
  }

  void on_loop(const std::function<void()>& task) {
    std::promise<void> done;
    loop_.post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }

  SessionOptions options_;
  CoordinatorSpec spec_;
  SteadyClock clock_;
  HealthBoard board_;
  ActorRuntime runtime_;
  transport::EventLoop loop_;
  std::unique_ptr<ThreadComputeQueue> disk_;
  std::unique_ptr<StateStore> store_;
  std::unique_ptr<transport::Context> context_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<AgentRestarts> restarts_;
  caf::actor handle_;
  std::string address_;
  std::promise<Outcome> over_;
  std::shared_future<Outcome> outcome_;
};

/// Devices of other kinds may be planned with and simulated. Whether a GPU is there shows on its
/// host.
Status check_devices(const partition::Cluster& cluster) {
  for (const auto& host : cluster.hosts)
    for (const auto& device : host.devices)
      if (device.kind != "cpu" && device.kind != kCudaDevice && !device.is_paced())
        return Error(
            ErrorCode::kInvalidArgument,
            "host " + host.name + " has a device of kind \"" + device.kind +
                "\", which can be planned with, but not trained on; only \"cpu\", \"cuda\" and "
                "\"paced\" can");
  return {};
}

Status check_text_is_named(const JobConfig& job) {
  if (!job.data.text.empty() || !job.data.tokens.empty()) return {};
  return Error(
      ErrorCode::kInvalidArgument,
      "job: data.text is not set; name the text to train on, or a data set in data.tokens");
}

/// Null: the job's connections are plain.
Result<std::shared_ptr<const transport::Tls>> tls_of(const JobConfig& job,
                                                     const SessionOptions& options) {
  if (!uses_tls(job)) return std::shared_ptr<const transport::Tls>();
  if (options.credentials.empty())
    return Error(ErrorCode::kInvalidArgument,
                 "job: [transport] security: this job's connections are under TLS, but nobody gave "
                 "it credentials; on networks that you trust set transport.security = \"none\"");
  HOLMES_TRY_ASSIGN(auto tls, transport::Tls::make(options.credentials));
  const std::string& name = options.job_name;
  const transport::CertifiedName needed{name.empty() ? tls->name().job : name, ""};
  if (tls->name() == needed) return tls;
  return Error(
      ErrorCode::kInvalidArgument,
      "the credentials are those of " + to_string(tls->name()) + ", not of " + to_string(needed));
}

}  // namespace

Result<std::unique_ptr<Session>> start_session(SessionOptions options) {
  HOLMES_TRY_ASSIGN(const JobConfig job, checked_job(options.job));
  HOLMES_TRY(check_text_is_named(job));
  HOLMES_TRY_ASSIGN(const auto text, open_text(job));
  HOLMES_TRY(make_text_batches(job, text));
  CoordinatorSpec spec;
  spec.job = job;
  HOLMES_TRY_ASSIGN(spec.plan, plan_of(job));
  HOLMES_TRY(partition::check_runnable(spec.plan));
  HOLMES_TRY(check_devices(job.cluster));
  spec.data_hash = text->hash();
  if (options.resume) {
    HOLMES_TRY_ASSIGN(const Start start, find_start(job, text->hash()));
    if (start.step.value() > job.train.steps)
      return Error(ErrorCode::kInvalidArgument,
                   "checkpoint " + start.checkpoint + " has more steps than train.steps = " +
                       std::to_string(job.train.steps) + "; raise train.steps");
    spec.first_step = start.step;
    spec.checkpoint = start.checkpoint;
  }
  HOLMES_TRY_ASSIGN(auto tls, tls_of(job, options));
  options.credentials = {};
  const SteadyClock clock;
  spec.job_name = options.job_name;
  if (spec.job_name.empty())
    spec.job_name = tls != nullptr ? tls->name().job : new_job_name(clock, job.run.name);
  spec.join_deadline = options.join_deadline;
  spec.agents_are_remote = job.transport.nics == NicSource::kInterfaces;
  const auto before_start = [prepare = options.before_start,
                             root = checkpoint_root(job)]() -> Status {
    if (prepare) HOLMES_TRY(prepare());
    model::discard_unfinished(root);
    return {};
  };
  HOLMES_TRY_ASSIGN(auto store, make_file_store(job, text->hash()));
  auto session = std::make_unique<CoordinatorSession>(std::move(options), std::move(spec),
                                                      std::move(store), std::move(tls));
  HOLMES_TRY(session->open());
  HOLMES_TRY(before_start());
  HOLMES_TRY(session->start_agents());
  return std::unique_ptr<Session>(std::move(session));
}

}  // namespace holmes::actors
