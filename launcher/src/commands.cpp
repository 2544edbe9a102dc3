#include "commands.hpp"

#include <nlohmann/json.hpp>

#include "exit_codes.hpp"
#include "holmes/actors/job_config.hpp"
#include "holmes/model/checkpoint.hpp"
#include "holmes/model/generate.hpp"
#include "holmes/partition/plan.hpp"
#include "holmes/partition/plan_json.hpp"

namespace holmes::launcher {
namespace fs = std::filesystem;
namespace {

int finish(const Status& status, Console& console) {
  if (status) return kExitDone;
  console.log("holmes: " + status.error().message());
  return exit_code(status.error().code());
}

Status try_show_plan(const PlanCommand& command, Console& console) {
  HOLMES_TRY_ASSIGN(const auto job,
                    actors::load_job({command.job, command.overrides, command.nccl}));
  HOLMES_TRY_ASSIGN(const auto plan, partition::plan(job.cluster, actors::model_cost(job),
                                                     job.train.shape, job.parallel));
  console.print(command.json ? partition::to_json(plan, job.cluster)
                             : partition::explain(plan, job.cluster));
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
        return true;
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
  return finish(try_show_plan(command, console), console);
}

int generate(const GenerateCommand& command, Console& console) {
  return finish(try_generate(command, console), console);
}

int show_keys(Console& console) {
  console.print(actors::describe_keys());
  return kExitDone;
}

}  // namespace holmes::launcher
