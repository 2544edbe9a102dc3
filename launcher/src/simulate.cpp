#include "simulate.hpp"

#include <cerrno>
#include <fstream>

#include "exit_codes.hpp"
#include "fit.hpp"
#include "holmes/partition/trace.hpp"
#include "simulate_report.hpp"

namespace holmes::launcher {
namespace {

Status write_file(const std::filesystem::path& file, const std::string& text) {
  errno = 0;
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) return system_error("cannot write " + file.string(), errno);
  return {};
}

std::string_view without_comment(std::string_view line) {
  line = line.substr(0, line.find('#'));
  const std::size_t end = line.find_last_not_of(" \t\r");
  return end == std::string_view::npos ? std::string_view{} : line.substr(0, end + 1);
}

/// One change a line; what follows '#' is for people.
Status read_changes(const std::filesystem::path& file, const partition::Cluster& cluster,
                    std::vector<partition::Change>& changes) {
  std::ifstream in(file);
  if (!in) return Error(ErrorCode::kNotFound, "changes: cannot read " + file.string());
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    const std::string_view text = without_comment(line);
    if (text.empty()) continue;
    auto change = partition::parse_change(text, cluster);
    if (!change) return change.error().in(file.string() + ":" + std::to_string(number));
    changes.push_back(*change);
  }
  return {};
}

Result<std::vector<partition::Change>> all_changes(const SimulateCommand& command,
                                                   const partition::Cluster& cluster) {
  std::vector<partition::Change> changes;
  if (!command.changes_file.empty())
    HOLMES_TRY(read_changes(command.changes_file, cluster, changes));
  for (const std::string& text : command.changes) {
    HOLMES_TRY_ASSIGN(const auto change, partition::parse_change(text, cluster));
    changes.push_back(change);
  }
  return changes;
}

std::string title_of(const actors::JobConfig& job, const partition::Timeline& timeline) {
  const auto& last = timeline.segments.back();
  const auto& plan = last.planned.plan;
  return job.run.name + " · " + std::string(to_string(plan.strategy)) + " · " +
         std::to_string(plan.stages.size()) + (plan.stages.size() == 1 ? " stage" : " stages") +
         " · " + std::string(to_string(plan.schedule)) + " · " + step_text(last.simulated.step_s) +
         " a step";
}

Status try_simulate(const SimulateCommand& command, Console& console) {
  HOLMES_TRY_ASSIGN(const auto job,
                    actors::load_job({command.job, command.overrides, command.nccl, false}));
  partition::TimelineOptions options;
  options.search = search_options(job, command.ablations);
  options.steps = command.steps;
  options.record = !command.trace.empty() || !command.svg.empty();
  options.recovery_s = command.recovery_s;
  HOLMES_TRY_ASSIGN(options.changes, all_changes(command, job.cluster));
  const auto model = actors::model_cost(job);
  HOLMES_TRY_ASSIGN(const auto timeline,
                    partition::run_timeline(job.cluster, model, job.train.shape, options));
  if (!command.trace.empty())
    HOLMES_TRY(write_file(command.trace, partition::to_chrome_trace(timeline)));
  if (!command.svg.empty())
    HOLMES_TRY(write_file(command.svg, partition::to_svg(timeline, {title_of(job, timeline)})));
  console.print(command.json ? simulation_json(job, model, timeline)
                             : simulation_text(job, model, timeline));
  return {};
}

}  // namespace

int simulate(const SimulateCommand& command, Console& console) {
  if (!command.fit.empty()) return fit(command, console);
  const Status status = try_simulate(command, console);
  if (status) return kExitDone;
  console.log("holmes: " + status.error().message());
  return exit_code(status.error().code());
}

}  // namespace holmes::launcher
