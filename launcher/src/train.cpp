#include "train.hpp"

#include <atomic>
#include <mutex>

#include <sys/wait.h>
#include <unistd.h>

#include "display.hpp"
#include "effective_config.hpp"
#include "exit_codes.hpp"
#include "failure.hpp"
#include "foresight.hpp"
#include "holmes/model/checkpoint.hpp"
#include "holmes/partition/plan_json.hpp"
#include "job_security.hpp"
#include "limits.hpp"
#include "local_processes.hpp"
#include "metrics.hpp"
#include "run_folder.hpp"
#include "signals.hpp"
#include "summary.hpp"

namespace holmes::launcher {
namespace {

/// Takes the session's events apart: display, metrics, files, and what the summary needs.
class EventSink {
 public:
  EventSink(const RunFolder& folder, const actors::JobConfig& job, Display& display, Logger log)
      : folder_(folder),
        cluster_(job.cluster),
        display_(display),
        metrics_({folder.metrics_file(), job.train.steps, job.data.validate_every, job.cluster}),
        step_times_(job),
        log_(std::move(log)) {}

  void on_event(const actors::Event& event) {
    warn(metrics_.on_event(event));
    step_times_.on_event(event);
    if (const auto* plan = std::get_if<actors::PlanInForce>(&event); plan && !plan->plan.empty())
      warn(folder_.write("plan.json", partition::to_json(plan->plan, cluster_) + "\n"));
    if (const auto* validation = std::get_if<actors::ValidationFinished>(&event))
      validation_nats_ = validation->loss;
    if (const auto* checkpoint = std::get_if<actors::CheckpointSaved>(&event))
      checkpoint_ = checkpoint->folder;
    if (const auto* incident = std::get_if<actors::Incident>(&event);
        incident && incident->goes_on && !incident->host.empty())
      hosts_lost_.push_back(incident->host);
    display_.on_event(event);
  }

  std::optional<double> validation_nats() const { return validation_nats_; }
  const std::filesystem::path& checkpoint() const { return checkpoint_; }
  const std::vector<std::string>& hosts_lost() const { return hosts_lost_; }
  std::optional<StepTimes> step_times() const { return step_times_.times(); }

 private:
  void warn(const Status& status) {
    if (!status) log_.warning(status.error().message());
  }

  const RunFolder& folder_;
  const partition::Cluster cluster_;
  Display& display_;
  MetricsWriter metrics_;
  StepTimesTracker step_times_;
  const Logger log_;
  std::optional<double> validation_nats_;
  std::filesystem::path checkpoint_;
  std::vector<std::string> hosts_lost_;
};

/// Brings stop signals to a session that may not exist yet.
class StopRequest {
 public:
  StopRequest(Console& console, const Clock& clock) : console_(console), clock_(clock) {}

  /// Who stops a job may tell the process and then its group, which is one wish and no second one.
  void on_signal(int count) {
    constexpr auto kOneWish = std::chrono::milliseconds(200);
    const TimePoint now = clock_.now();
    if (count == 1) first_signal_ = now;
    if (count > 1 && now - first_signal_ < kOneWish) return;
    if (count > 1) ::_exit(kExitFailed);  // the agents die with this process
    ask();
    console_.log("holmes: stopping after this step; a second signal stops at once, without saving");
  }

  void attach(actors::Session* session) {
    const std::lock_guard lock(mutex_);
    session_ = session;
    if (asked_ && session_ != nullptr) session_->request_stop();
  }

 private:
  void ask() {
    const std::lock_guard lock(mutex_);
    asked_ = true;
    if (session_ != nullptr) session_->request_stop();
  }

  Console& console_;
  const Clock& clock_;
  TimePoint first_signal_;  // the watcher's thread's
  std::mutex mutex_;
  actors::Session* session_ = nullptr;
  bool asked_ = false;
};

/// A newer checkpoint may have lost its manifest: nobody should lose its steps without a word.
void warn_of_passed_over(const RunFolder& folder, const Logger& log) {
  if (const auto foreign = model::find_foreign(folder.checkpoints()))
    log.warning(foreign->string() + " is passed over: it has no manifest.json and is no whole " +
                "checkpoint; resuming from the newest whole one");
}

RunStart run_start(const TrainCommand& command) {
  if (command.resume) return RunStart::kResume;
  return command.overwrite ? RunStart::kOverwrite : RunStart::kFresh;
}

std::string host_name(const actors::JobConfig& job, HostId host) {
  const bool known = host.index() < job.cluster.hosts.size();
  return known ? job.cluster.hosts[host.index()].name : "host-" + std::to_string(host.value());
}

LocalProcesses::Options process_options(const RunFolder& folder, const actors::JobConfig& job,
                                        const AgentStart& start, const TrainServices& services) {
  LocalProcesses::Options options;
  options.executable = start.executable;
  options.arguments = [log = services.log_options,
                       &start](const actors::AgentInvitation& invitation) {
    LogOptions for_file = log;
    for_file.level = std::min(log.level, LogLevel::kInfo);
    auto words = agent_arguments(invitation, for_file, start.input ? "-" : "");
    return start.words ? start.words(invitation.host, words) : words;
  };
  options.input = start.input;
  options.log_file = [&folder, &job](HostId host) { return folder.log_file(host_name(job, host)); };
  options.on_change = [&](const std::vector<std::pair<HostId, int>>& running) {
    std::vector<AgentProcess> processes;
    for (const auto& [host, pid] : running) processes.push_back({host_name(job, host), pid});
    if (auto status = folder.write("processes.json", processes_json(processes)); !status)
      services.log.warning(status.error().message());
  };
  return options;
}

DisplayOptions display_options(const TrainCommand& command, const TrainServices& services,
                               const actors::JobConfig& job, const RunFolder& folder) {
  DisplayOptions options;
  options.mode = command.json                     ? DisplayMode::kJson
                 : services.console.columns() > 0 ? DisplayMode::kLive
                                                  : DisplayMode::kPlain;
  options.color = services.color;
  options.unicode = services.unicode;
  options.steps_total = job.train.steps;
  options.cluster = job.cluster;
  options.log_file = [&folder](const std::string& host) {
    const auto file = folder.log_file(host);
    std::error_code error;  // an agent that others started keeps its log elsewhere
    return std::filesystem::exists(file, error) ? file : std::filesystem::path();
  };
  return options;
}

Status begin(const TrainCommand& command, const actors::JobConfig& job, const RunFolder& folder,
             Console& console) {
  HOLMES_TRY(folder.begin(command.job));
  HOLMES_TRY_ASSIGN(const auto changed, keep_effective(folder, job));
  if (!command.resume) return {};
  for (const std::string& key : changed)
    console.log("holmes: resumed with another setting than before: " + key);
  return {};
}

/// What a process that failed by itself wrote last into its log: mostly why.
std::string last_words(const RunFolder& folder, const std::string& host, int wait_status) {
  const bool said_so = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) != 0;
  return said_so ? last_line(folder.log_file(host)) : "";
}

Result<actors::Outcome> run_session(const TrainCommand& command, const actors::JobConfig& job,
                                    const AgentStart& start, const RunFolder& folder,
                                    EventSink& events, const TrainServices& services) {
  LocalProcesses processes(process_options(folder, job, start, services));
  StopRequest stop(services.console, services.clock);
  const SignalWatcher signals([&stop](int count) { stop.on_signal(count); });
  actors::SessionOptions options;
  options.job = job;
  options.resume = command.resume;
  options.starter = start.by_others ? nullptr : &processes;
  options.job_name = start.job_name;
  options.credentials = start.credentials;
  options.join_deadline = start.join_deadline;
  options.before_start = [&] { return begin(command, job, folder, services.console); };
  options.log = services.log;
  options.on_event = [&events](const actors::Event& event) { events.on_event(event); };
  HOLMES_TRY_ASSIGN(const auto session, services.start_session(std::move(options)));
  processes.on_exit([&](HostId host, int status) {
    session->agent_exited(host, status, last_words(folder, host_name(job, host), status));
  });
  stop.attach(session.get());
  const actors::Outcome outcome = session->wait();
  stop.attach(nullptr);
  processes.on_exit({});
  return outcome;
}

int report(const Summary& summary, bool json, Console& console) {
  console.print(json ? summary_json(summary) : summary_text(summary));
  switch (summary.outcome) {
    case actors::Outcome::kFinished:
      return kExitDone;
    case actors::Outcome::kInterrupted:
      return kExitInterrupted;
    case actors::Outcome::kFailed:
      break;
  }
  return kExitFailed;
}

Summary summarise(const EventSink& events, const actors::JobConfig& job, actors::Outcome outcome) {
  Summary summary;
  summary.outcome = outcome;
  summary.validation_nats = events.validation_nats();
  summary.checkpoint = events.checkpoint();
  summary.hosts_lost = events.hosts_lost();
  summary.step_times = events.step_times();
  summary.byte_tokens = job.data.tokenizer == "bytes";
  if (!summary.byte_tokens || !summary.validation_nats) return summary;
  if (outcome != actors::Outcome::kFinished)
    return summary;  // whoever stopped it waits for the end
  if (const auto gzip = gzip_nats_of_validation(job)) summary.gzip_nats = *gzip;
  return summary;
}

}  // namespace

int train(const TrainCommand& command, const TrainServices& services) {
  const TimePoint start = services.clock.now();
  const auto job = services.load_job({command.job, command.overrides, command.nccl});
  if (!job) return report_failure(job.error(), services.console, command.json);
  if (job->transport.nics == actors::NicSource::kInterfaces)
    return report_failure(Error(ErrorCode::kInvalidArgument,
                                "transport.nics = \"interfaces\": this job's hosts are other "
                                "machines; train it with holmes launch"),
                          services.console, command.json);
  return train(command, *job, {services.agent_executable}, start, services);
}

int train(const TrainCommand& command, const actors::JobConfig& job, AgentStart agents,
          TimePoint start, const TrainServices& services) {
  if (const auto secured = secure(job, agents); !secured)
    return report_failure(secured.error(), services.console, command.json);
  if (const auto enough = check_descriptors(job.cluster.hosts.size()); !enough)
    return report_failure(enough.error(), services.console, command.json);
  if (const auto fits = check_fits(job); !fits)
    return report_failure(fits.error(), services.console, command.json);
  const auto folder = RunFolder::open(job.run.folder, run_start(command));
  if (!folder) return report_failure(folder.error(), services.console, command.json);
  if (command.resume) warn_of_passed_over(*folder, services.log);
  Display display(services.console, services.clock,
                  display_options(command, services, job, *folder));
  EventSink events(*folder, job, display, services.log);
  const auto outcome = run_session(command, job, agents, *folder, events, services);
  if (!outcome) return report_failure(outcome.error(), services.console, command.json);
  release_stop_signals();
  display.end();
  Summary summary = summarise(events, job, *outcome);
  summary.duration = services.clock.now() - start;
  return report(summary, command.json, services.console);
}

}  // namespace holmes::launcher
