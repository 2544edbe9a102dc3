#include "commands.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "exit_codes.hpp"
#include "failure.hpp"
#include "holmes/actors/job_config.hpp"
#include "holmes/model/checkpoint.hpp"
#include "holmes/model/generate.hpp"
#include "holmes/partition/plan.hpp"
#include "holmes/partition/plan_json.hpp"
#include "holmes/partition/search.hpp"
#include "printable.hpp"
#include "simulate_report.hpp"

namespace holmes::launcher {
namespace fs = std::filesystem;
namespace {

int finish(const Status& status, Console& console, bool json = false) {
  return status ? kExitDone : report_failure(status.error(), console, json);
}

std::string text(const char* format, double value) {
  std::array<char, 64> result{};
  std::snprintf(result.data(), result.size(), format, value);
  return result.data();
}

constexpr double kGib = 1024.0 * 1024 * 1024;

/// "device 3 of host a1", numbered from 0 within the host.
std::string device_text(const partition::Cluster& cluster, DeviceId device) {
  std::size_t position = device.index();
  for (const auto& host : cluster.hosts) {
    if (position < host.devices.size())
      return "device " + std::to_string(position) + " of host " + host.name;
    position -= host.devices.size();
  }
  return "device " + std::to_string(device.value());
}

/// How much longer than `step_s`; what is as fast is not called slower or faster.
double percent_more(double other_s, double step_s) {
  constexpr double kSeen = 0.05;  // of what one decimal shows
  const double percent = (other_s / step_s - 1) * 100;
  return std::abs(percent) < kSeen ? 0 : percent;
}

/// What came second for each kind of choice.
std::string runners_up_text(const partition::Searched& found) {
  if (found.runners_up.empty())
    return found.plan.strategy == partition::Strategy::kAuto
               ? "  no runner-up: there is no other plan\n"
               : "  no runner-up: the job says how to plan; strategy auto looks at other plans\n";
  std::string result;
  for (const auto& other : found.runners_up)
    result += "  runner-up with " + other.what + text(": %.4g s a step", other.step_s) +
              text(" (%+.1f %%)\n", percent_more(other.step_s, found.predicted.step_s));
  return result;
}

std::string predicted_text(const partition::Searched& found, const partition::Cluster& cluster,
                           const partition::MemoryShort& tightest, bool explain) {
  const auto& predicted = found.predicted;
  std::string result = "predicted by simulation: " + text("%.4g s a step, ", predicted.step_s) +
                       text("%.4g samples/s, ", predicted.samples_per_s) +
                       text("%.4g TFLOPS a device (96-style), ", predicted.tflops_per_device) +
                       text("%.3g GiB on the fullest device\n", tightest.use.total() / kGib);
  if (found.considered > 1)
    result += "auto simulated " + std::to_string(found.simulated) + " of " +
              std::to_string(found.considered) + " candidates\n";
  if (explain) result += runners_up_text(found);
  if (tightest.missing() > 0)
    result += "memory is short: " + device_text(cluster, tightest.device) + " lacks " +
              text("%.3g GiB\n", tightest.missing() / kGib);
  return result;
}

/// Messages may quote any bytes; what is no UTF-8 is replaced.
std::string written(const nlohmann::ordered_json& object) {
  return object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

nlohmann::ordered_json figures(const partition::Simulation& predicted) {
  return {{"step_s", predicted.step_s},
          {"samples_per_s", predicted.samples_per_s},
          {"tflops_per_device", predicted.tflops_per_device}};
}

std::string predicted_json(const partition::Searched& found, const actors::JobConfig& job,
                           const partition::MemoryShort& tightest) {
  auto object = nlohmann::ordered_json::parse(to_json(found.plan, job.cluster));
  object["memory_gib_per_device"] = tightest.use.total() / kGib;
  object["predicted"] = figures(found.predicted);
  object["memory_missing_gib"] = std::max(tightest.missing(), 0.0) / kGib;
  object["runners_up"] = nlohmann::ordered_json::array();
  for (const auto& other : found.runners_up)
    object["runners_up"].push_back({{"what", other.what}, {"step_s", other.step_s}});
  return written(object);
}

struct Compared {
  partition::Strategy strategy;
  Result<partition::Searched> found;
  double missing_gib = 0;  ///< Of the device that lacks most.
};

std::vector<Compared> all_strategies(const actors::JobConfig& job, const Ablations& ablations) {
  std::vector<Compared> rows;
  const auto model = actors::model_cost(job);
  for (int i = 0; i <= static_cast<int>(partition::kStrategyLast); ++i) {
    auto options = search_options(job, ablations);
    options.plan.strategy = static_cast<partition::Strategy>(i);
    Compared row{options.plan.strategy,
                 partition::predict(job.cluster, model, job.train.shape, options)};
    if (row.found) {
      const auto tightest =
          partition::tightest(row.found->plan, job.cluster, model, row.found->cost);
      row.missing_gib = std::max(tightest.missing(), 0.0) / kGib;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string compared_json(const std::vector<Compared>& rows) {
  auto list = nlohmann::ordered_json::array();
  for (const Compared& row : rows) {
    nlohmann::ordered_json object{{"strategy", to_string(row.strategy)}};
    if (row.found) {
      object.update(figures(row.found->predicted));
      object["stages"] = row.found->plan.stages.size();
      object["memory_missing_gib"] = row.missing_gib;
    } else {
      object["error"] = row.found.error().message();
    }
    list.push_back(std::move(object));
  }
  return written({{"strategies", std::move(list)}});
}

/// One line for each strategy; those that cannot plan say why.
std::string compared_text(const std::vector<Compared>& rows, const partition::CostOptions& cost) {
  std::string table = "strategy              step s  samples/s  TFLOPS/device  stages\n";
  for (const Compared& row : rows) {
    std::string line(to_string(row.strategy));
    line.resize(20, ' ');
    if (row.found)
      line += text("%8.4g", row.found->predicted.step_s) +
              text("  %9.4g", row.found->predicted.samples_per_s) +
              text("  %13.4g", row.found->predicted.tflops_per_device) +
              text("  %6.0f", static_cast<double>(row.found->plan.stages.size()));
    else
      line += "  " + printable(row.found.error().message());
    if (row.missing_gib > 0) line += text("  memory is short by %.3g GiB", row.missing_gib);
    table += line + "\n";
  }
  if (cost.exact || cost.element_bytes != 2)
    table +=
        "The baselines exchange in half precision by rings, the others as this job does; to "
        "compare "
        "placements alone: --set cost.element_bytes=2 --set cost.exact=false --set "
        "cost.collective=ring\n";
  if (const auto note = calibration_note(cost); !note.empty()) table += note + "\n";
  return table;
}

Status try_show_plan(const PlanCommand& command, Console& console) {
  HOLMES_TRY_ASSIGN(const auto job,
                    actors::load_job({command.job, command.overrides, command.nccl, false}));
  if (command.compare) {
    const auto rows = all_strategies(job, command.ablations);
    console.print(command.json ? compared_json(rows) : compared_text(rows, job.cost));
    return {};
  }
  const auto model = actors::model_cost(job);
  const auto options = search_options(job, command.ablations);
  HOLMES_TRY_ASSIGN(const auto found,
                    partition::predict(job.cluster, model, job.train.shape, options));
  const auto tightest = partition::tightest(found.plan, job.cluster, model, found.cost);
  console.print(command.json ? predicted_json(found, job, tightest)
                             : explain(found.plan, job.cluster) +
                                   predicted_text(found, job.cluster, tightest, command.explain));
  return {};
}

Status try_generate(const GenerateCommand& command, Console& console) {
  HOLMES_TRY_ASSIGN(const auto folder, find_checkpoint(command.checkpoint));
  HOLMES_TRY_ASSIGN(const auto checkpoint, model::Checkpoint::open(folder, {nullptr, true}));
  model::GenerateOptions options;
  options.max_tokens = command.tokens;
  options.temperature = static_cast<float>(command.temperature);
  options.top_k = command.top_k;
  options.seed = command.seed;
  const auto engine = model::make_cpu_engine();
  bool begun = false;
  const auto status =
      model::generate(checkpoint, *engine, command.prompt, options, [&](std::string_view text) {
        if (!begun) console.stream(command.prompt);
        begun = true;
        console.stream(text);
        return console.output_error() == 0;  // nobody reads what would follow
      });
  if (begun) console.stream("\n");
  return status;
}

}  // namespace

Result<fs::path> find_checkpoint(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    return Error(ErrorCode::kNotFound, "checkpoint " + path.string() +
                                           ": no such folder; name a run folder or a folder " +
                                           "such as RUN/checkpoints/step-00000100");
  if (fs::exists(path / "manifest.json", error)) return path;
  const bool run_folder = fs::is_directory(path / "checkpoints", error);
  return model::find_latest(run_folder ? path / "checkpoints" : path);
}

int show_plan(const PlanCommand& command, Console& console) {
  return finish(try_show_plan(command, console), console, command.json);
}

int generate(const GenerateCommand& command, Console& console) {
  return finish(try_generate(command, console), console);
}

int show_keys(Console& console) {
  console.print(actors::describe_keys());
  return kExitDone;
}

}  // namespace holmes::launcher
