#include "launch.hpp"

#include "agent_start.hpp"
#include "failure.hpp"
#include "hostfile.hpp"
#include "run_folder.hpp"

namespace holmes::launcher {
namespace {

using actors::JobConfig;

/// The job's own settings come after, and win.
std::vector<std::string> overrides_of(const LaunchCommand& command) {
  std::vector<std::string> overrides;
  if (command.via != LaunchVia::kLocal) overrides.emplace_back("transport.nics=interfaces");
  const auto& given = command.train.overrides;
  overrides.insert(overrides.end(), given.begin(), given.end());
  return overrides;
}

/// Without --hosts a Slurm job trains on its nodes, and everything else on the whole cluster file.
Result<JobConfig> load(const LaunchCommand& command, const SlurmAllocation& slurm,
                       const TrainServices& services) {
  actors::ConfigSource source{command.train.job, overrides_of(command), command.train.nccl};
  if (!command.hosts.empty()) {
    HOLMES_TRY_ASSIGN(auto all, read_hosts(command.hosts));
    HOLMES_TRY_ASSIGN(source.hosts, select_hosts(std::move(all), command.include, command.exclude));
  } else {
    for (const auto& node : slurm.nodes) source.hosts.push_back({node.name});
  }
  return services.load_job(source);
}

/// A Slurm job that was put back into the queue goes on where it was, without being told.
void resume_if_started_again(const SlurmAllocation& slurm, const JobConfig& job,
                             TrainCommand& train, Console& console) {
  if (!slurm.again || train.resume || train.overwrite) return;
  if (!has_checkpoints(job.run.folder)) return;
  train.resume = true;
  console.log("holmes: Slurm started this job again: going on from its newest checkpoint");
}

}  // namespace

int launch(const LaunchCommand& command, const TrainServices& services) {
  const TimePoint begun = services.clock.now();
  const auto fail = [&](const Error& error) {
    return report_failure(error, services.console, command.train.json);
  };
  const auto slurm =
      command.via == LaunchVia::kSlurm ? slurm_allocation() : Result(SlurmAllocation{});
  if (!slurm) return fail(slurm.error());
  auto job = load(command, *slurm, services);
  if (!job) return fail(job.error());
  const auto start = agent_start(command, *slurm, *job, services.console);
  if (!start) return fail(start.error());
  TrainCommand how = command.train;
  resume_if_started_again(*slurm, *job, how, services.console);
  return train(how, *job, *start, begun, services);
}

}  // namespace holmes::launcher
