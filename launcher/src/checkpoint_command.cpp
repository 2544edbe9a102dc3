#include "checkpoint_command.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "exit_codes.hpp"
#include "failure.hpp"
#include "holmes/actors/import_model.hpp"
#include "holmes/model/checkpoint.hpp"
#include "holmes/model/hugging_face.hpp"
#include "printable.hpp"

namespace holmes::launcher {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr double kMega = 1e6;

model::Dtype parse_dtype_option(const std::string& text) {
  if (text == "fp16") return model::Dtype::kF16;
  return text == "bf16" ? model::Dtype::kBF16 : model::Dtype::kF32;
}

/// What both kinds of folders have.
ordered_json describe(const model::GptConfig& config) {
  // Padded rows are no parameters of the model.
  model::GptConfig unpadded = config;
  unpadded.vocabulary_padding = 1;
  std::uint64_t parameters = 0;
  for (std::uint32_t number = 0; number <= config.layers + 1; ++number)
    for (const auto& spec : model::layer_parameters(unpadded, number))
      if (!spec.tied_copy) parameters += spec.count;
  ordered_json object{{"architecture", model::to_string(config.family)},
                      {"layers", config.layers},
                      {"heads", config.heads},
                      {"channels", config.channels},
                      {"sequence", config.sequence},
                      {"vocabulary", config.vocabulary},
                      {"parameters", parameters}};
  if (config.family == model::Family::kGpt2) return object;
  object["head"] = config.tied() ? "tied" : "untied";
  object["kv_heads"] = config.kv_head_count();
  object["head_channels"] = config.head_width();
  object["feed_forward"] = config.feed_forward_width();
  object["rope_theta"] = config.rope.theta;
  object["rope_factor"] = config.rope.factor;
  return object;
}

/// One fact a line, the values in one column.
std::string table(const ordered_json& object) {
  std::string text;
  for (const auto& [key, value] : object.items())
    text += fmt::format("{:<15}{}\n", key,
                        printable(value.is_string() ? value.get<std::string>() : value.dump()));
  return text;
}

void print(const CheckpointCommand& command, const ordered_json& object, Console& console) {
  console.print(command.json ? object.dump(-1, ' ', false, ordered_json::error_handler_t::replace)
                             : table(object));
}

bool is_hugging_face(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path / "config.json", ignored) && !fs::exists(path / "manifest.json", ignored);
}

Status inspect(const CheckpointCommand& command, Console& console) {
  if (is_hugging_face(command.from)) {
    HOLMES_TRY_ASSIGN(const auto source, model::HuggingFaceModel::open(command.from));
    ordered_json object{{"kind", "Hugging Face model"}};
    object.update(describe(source.config()));
    object["dtype"] = to_string(source.dtype());
    print(command, object, console);
    return {};
  }
  HOLMES_TRY_ASSIGN(const auto folder, find_checkpoint(command.from));
  HOLMES_TRY_ASSIGN(const auto found, model::Checkpoint::open(folder, {nullptr, true}));
  const auto& job = found.job();
  ordered_json object{
      {"kind", "checkpoint"}, {"folder", folder.string()}, {"steps", found.step().value()}};
  object.update(describe(job.model));
  object.update(ordered_json{{"dtype", "F32"},
                             {"tokenizer", job.tokenizer},
                             {"batch", job.batch},
                             {"seed", job.seed},
                             {"data_hash", job.data_hash},
                             {"isa", job.isa}});
  print(command, object, console);
  return {};
}

Status export_model(const CheckpointCommand& command, Console& console) {
  HOLMES_TRY_ASSIGN(const auto folder, find_checkpoint(command.from));
  HOLMES_TRY_ASSIGN(const auto found, model::Checkpoint::open(folder, {nullptr, true}));
  HOLMES_TRY_ASSIGN(
      const auto written,
      model::export_hugging_face(found, command.to, {.dtype = parse_dtype_option(command.dtype)}));
  if (command.json) {
    print(command,
          {{"folder", command.to.string()},
           {"tensors", written.tensors},
           {"parameters", written.parameters},
           {"bytes", written.bytes}},
          console);
    return {};
  }
  console.print(printable(fmt::format("{}: {} tensors, {} parameters in {}, {:.1f} MB",
                                      command.to.string(), written.tensors, written.parameters,
                                      command.dtype, static_cast<double>(written.bytes) / kMega)));
  return {};
}

/// What goes on from an imported model, as one types it: with the overrides that named its run.
std::string resume_command(const CheckpointCommand& command) {
  std::string text = "holmes train " + shell_word(command.to.string());
  for (const auto& setting : command.overrides) text += " --set " + shell_word(setting);
  return text + " --resume";
}

Status import(const CheckpointCommand& command, Console& console) {
  HOLMES_TRY_ASSIGN(const auto job,
                    actors::load_job({command.to, command.overrides, command.nccl}));
  HOLMES_TRY_ASSIGN(const auto folder, actors::import_model(job, command.from));
  if (command.json) {
    print(command, {{"folder", folder.string()}}, console);
    return {};
  }
  console.print(
      printable(fmt::format("{}: {} goes on from it", folder.string(), resume_command(command))));
  return {};
}

}  // namespace

int checkpoint(const CheckpointCommand& command, Console& console) {
  Status status;
  switch (command.action) {
    case CheckpointCommand::Action::kInspect:
      status = inspect(command, console);
      break;
    case CheckpointCommand::Action::kExport:
      status = export_model(command, console);
      break;
    case CheckpointCommand::Action::kImport:
      status = import(command, console);
      break;
  }
  if (status) return kExitDone;
  return report_failure(status.error(), console, command.json);
}

}  // namespace holmes::launcher
