#include "cli.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <sstream>

#include <CLI/CLI.hpp>

#include "exit_codes.hpp"
#include "failure.hpp"
#include "holmes/base/suggest.hpp"

namespace holmes::launcher {
namespace {

constexpr const char* kFooter =
    "Exit codes: 0 done, 1 failed, 2 bad usage or configuration, 3 interrupted\n"
    "(a checkpoint was saved if a step had been made).\n"
    "Results go to stdout, logs to stderr.";

/// Everything that options are parsed into.
struct Parsed {
  TrainCommand train;
  LaunchCommand launch;
  std::string launch_via = "ssh";
  PlanCommand plan;
  SimulateCommand simulate;
  GenerateCommand generate;
  BenchCommand bench;
  NicsCommand nics;
  DataCommand data;
  CheckpointCommand checkpoint;
  SecurityCommand security;
  AgentCommand agent;
  bool keys = false;
  std::string log_level;
  LogOptions log;
};

/// CLI11 reads "" as 0 and -1 as the largest number.
template <class T>
CLI::Option* add_number(CLI::App& app, const char* name, T& target, const char* help, T least = 0,
                        T most = std::numeric_limits<T>::max()) {
  const auto check = [least, most](const std::string& text) -> std::string {
    T value{};
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc{} && stop == end && value >= least && value <= most) return "";
    std::ostringstream wanted;
    wanted << (std::is_integral_v<T> ? "wants a whole number, " : "wants a number, ") << least
           << " .. " << most << ", not '" << text << "'";
    return wanted.str();
  };
  return app.add_option(name, target, help)->check(check);
}

void add_log_options(CLI::App& app, Parsed& parsed) {
  app.add_flag("--log-json", parsed.log.json, "Write log lines as JSON");
  app.add_option("--log-level", parsed.log_level,
                 "Lowest level that is logged: debug, info, warning, error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
}

void add_job_options(CLI::App& app, std::filesystem::path& job,
                     std::vector<std::string>& overrides) {
  app.add_option("job", job, "Job file (TOML)");
  app.add_option("--set", overrides, "Override a key of the job file, for example train.steps=100")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

/// Options that stand for keys of the job file.
void add_shorthands(CLI::App& app, std::vector<std::string>& overrides) {
  const auto shorthand = [&](const char* option, const char* key, const char* help) {
    app.add_option_function<std::string>(
        option,
        [&overrides, key](const std::string& value) {
          overrides.push_back(std::string(key) + "=" + value);
        },
        help);
  };
  shorthand("--cluster", "cluster.file", "Cluster file instead of the job's");
  shorthand("--strategy", "parallel.strategy", "Strategy instead of the job's");
  shorthand("--schedule", "parallel.schedule", "Schedule instead of the job's");
}

void add_train_options(CLI::App& app, TrainCommand& command) {
  add_job_options(app, command.job, command.overrides);
  auto* resume = app.add_flag("--resume", command.resume,
                              "Continue from the newest checkpoint of the run folder");
  app.add_flag("--overwrite", command.overwrite,
               "Start over in a run folder that has checkpoints: they are removed")
      ->excludes(resume);
  app.add_flag("--json", command.json, "Print events as JSON lines");
  add_shorthands(app, command.overrides);
}

CLI::App* add_train(CLI::App& app, Parsed& parsed) {
  auto* train = app.add_subcommand("train", "Train a model as a job file says, on this machine");
  add_train_options(*train, parsed.train);
  train->add_flag("--keys", parsed.keys, "Print all keys of job and cluster files, and exit");
  add_log_options(*train, parsed);
  return train;
}

CLI::App* add_launch(CLI::App& app, Parsed& parsed) {
  auto* launch = app.add_subcommand("launch", "Train on other machines");
  auto& command = parsed.launch;
  add_train_options(*launch, command.train);
  auto* hosts = launch->add_option("--hosts", command.hosts,
                                   "Hostfile (NAME slots=N on each line) or list (a0,a1,b0:2); "
                                   "without it all hosts of the cluster file, or the nodes of the "
                                   "Slurm job");
  launch->add_option("--include", command.include, "Of these hosts only those")->needs(hosts);
  launch->add_option("--exclude", command.exclude, "Of these hosts not those")->needs(hosts);
  launch
      ->add_option("--via", parsed.launch_via,
                   "How agents start: ssh; slurm: srun, on the nodes of this Slurm job; local: as "
                   "processes of this machine; static: others start holmes agent on each host")
      ->check(CLI::IsMember({"ssh", "slurm", "local", "static"}))
      ->capture_default_str();
  launch->add_option("--ssh", command.ssh, "The command for ssh, with its options")
      ->capture_default_str();
  launch->add_option("--remote-executable", command.executable,
                     "Path of holmes on the hosts; without it that of this one");
  launch
      ->add_option("--env", command.environment,
                   "Environment of the agents: NAME=VALUE, or NAME as it is here; may be repeated")
      ->allow_extra_args(false);
  launch->add_option(
      "--rdzv-endpoint", command.rendezvous,
      "ADDRESS:PORT of this machine where agents join; with ssh and slurm it is found");
  launch->add_option("--rdzv-id", command.job_id, "Name that agents must know; static needs one");
  add_number(*launch, "--wait", command.wait_s, "Seconds that hosts have to join", 1U, 86400U)
      ->capture_default_str();
  launch->add_flag_callback(
      "--insecure", [&command] { command.train.overrides.emplace_back("transport.security=none"); },
      "Plain connections: whoever reaches the ports may join the job and read what goes by");
  launch->add_option("--credentials", command.credentials,
                     "Folder with the coordinator's certificate, of holmes security issue; without "
                     "it every job makes its own and sends each host's by ssh or srun");
  add_log_options(*launch, parsed);
  return launch;
}

/// Options that stand for keys of the job file, and ablations.
void add_planning_options(CLI::App& app, std::vector<std::string>& overrides,
                          Ablations& ablations) {
  add_shorthands(app, overrides);
  const auto without = [&](const char* option, bool& part, const char* help) {
    app.add_flag_callback(
        option, [&part] { part = false; }, help);
  };
  without("--no-self-adapting", ablations.self_adapting, "Equal blocks for all stages");
  without("--no-overlapped-optimizer", ablations.overlapped_optimizer,
          "Exchange gradients after the last pass");
  without("--no-nic-selection", ablations.nic_selection,
          "Everything on the fabric that all hosts have");
  without("--blocking-transfers", ablations.overlapped_transfers,
          "Who sends an activation waits until it is delivered");
}

CLI::App* add_plan(CLI::App& app, Parsed& parsed) {
  auto* plan = app.add_subcommand("plan", "Print who would train what over which NICs, and why");
  add_job_options(*plan, parsed.plan.job, parsed.plan.overrides);
  plan->add_flag("--json", parsed.plan.json, "Print the plan as JSON");
  plan->add_flag("--compare", parsed.plan.compare,
                 "Simulate a step of every strategy and print a table");
  plan->add_flag("--explain", parsed.plan.explain,
                 "Also what came second for each kind of choice (with --json always)");
  add_planning_options(*plan, parsed.plan.overrides, parsed.plan.ablations);
  add_log_options(*plan, parsed);
  return plan;
}

CLI::App* add_simulate(CLI::App& app, Parsed& parsed) {
  auto* simulate =
      app.add_subcommand("simulate", "Predict steps: how long, where the time goes, what changes");
  auto& command = parsed.simulate;
  add_job_options(*simulate, command.job, command.overrides);
  simulate->add_flag("--json", command.json, "Print figures as JSON");
  simulate->add_option("--steps", command.steps, "Steps to simulate")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  simulate->add_option("--trace", command.trace, "Write a timeline for ui.perfetto.dev (JSON)");
  simulate->add_option("--svg", command.svg, "Write a picture of the pipeline (SVG)");
  simulate
      ->add_option("--change", command.changes,
                   "What changes: 'fabric NAME at 40 s to 0.3', 'link FROM TO at 2 min to 0.5', "
                   "'host NAME at 40 s to 0.8' or 'host NAME at 60 s dies'; may be repeated")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  simulate->add_option("--fit", command.fit,
                       "Instead of a job: find the constants of [cost] from a file of measured "
                       "runs, one a line: name, job, cluster, overrides, measure, value");
  simulate->add_option("--changes", command.changes_file, "The same from a file, one a line");
  simulate
      ->add_option("--recovery", command.recovery_s,
                   "Seconds from a host's death to the first pass of the next plan")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  add_planning_options(*simulate, command.overrides, command.ablations);
  add_log_options(*simulate, parsed);
  return simulate;
}

CLI::App* add_generate(CLI::App& app, Parsed& parsed) {
  auto* generate = app.add_subcommand("generate", "Let a trained model continue a text");
  auto& command = parsed.generate;
  generate
      ->add_option("--checkpoint", command.checkpoint,
                   "A checkpoint, or a run folder: its newest one")
      ->required();
  generate->add_option("--prompt", command.prompt, "The text to continue")->required();
  add_number(*generate, "--tokens", command.tokens, "Tokens to write")->capture_default_str();
  add_number(*generate, "--temperature", command.temperature,
             "0: always the likeliest token; 1: as the model says", 0.0, 100.0)
      ->capture_default_str();
  add_number(*generate, "--top-k", command.top_k, "Choose among so many tokens; 0: among all")
      ->capture_default_str();
  add_number(*generate, "--seed", command.seed, "Seed of the choice")->capture_default_str();
  add_log_options(*generate, parsed);
  return generate;
}

CLI::App* add_bench(CLI::App& app, Parsed& parsed) {
  auto* bench = app.add_subcommand("bench", "Measure transports and collectives on this machine");
  auto& command = parsed.bench;
  bench->add_option("what", command.what, "p2p, allreduce or reduce-scatter")
      ->check(CLI::IsMember({"p2p", "allreduce", "reduce-scatter"}))
      ->required();
  add_number(*bench, "--ranks", command.ranks, "Processes that take part")->capture_default_str();
  add_number(*bench, "--bytes", command.bytes, "Bytes of each operation")->capture_default_str();
  bench->add_option("--transport", command.transport, "tcp")->capture_default_str();
  bench->add_option("--algorithm", command.algorithm, "auto, ring, direct or doubling")
      ->check(CLI::IsMember({"auto", "ring", "direct", "doubling"}))
      ->capture_default_str();
  add_number(*bench, "--bulk-sockets", command.bulk_sockets, "Sockets that bulk is striped over",
             1U, 16U)
      ->capture_default_str();
  add_number(*bench, "--seconds", command.seconds, "Time for each measurement", 0.01, 600.0)
      ->capture_default_str();
  bench->add_flag("--busy-poll", command.busy_poll,
                  "Never sleep: the least latency, for a core of each rank");
  bench->add_flag("--tls", command.tls, "Under mutual TLS");
  bench->add_flag("--json", command.json, "Print one JSON object");
  add_log_options(*bench, parsed);
  return bench;
}

CLI::App* add_nics(CLI::App& app, Parsed& parsed) {
  auto* nics = app.add_subcommand("nics", "Show the NICs of this machine and what they are");
  nics->add_flag("--all", parsed.nics.all, "Also those that are left out, and why");
  nics->add_flag("--json", parsed.nics.json, "Print JSON");
  nics->add_option("--root", parsed.nics.root,
                   "Folder with the recorded tree of a machine, instead of this one");
  add_log_options(*nics, parsed);
  return nics;
}

void add_inputs(CLI::App& app, DataCommand& command) {
  app.add_option(
         "input", command.source.inputs,
         "Text, JSON lines (.jsonl, .json), either gzipped (.gz), and folders of such files")
      ->required();
  app.add_option("--key", command.source.key, "Key of the text in a JSON line")
      ->capture_default_str();
  app.add_flag("--overwrite", command.overwrite, "Replace what is there");
  app.add_flag("--quiet", command.quiet, "Write no progress");
}

CLI::App* add_data(CLI::App& app, Parsed& parsed) {
  auto* data = app.add_subcommand("data", "Make tokens of text, and tokenizers");
  data->require_subcommand(1);
  auto& command = parsed.data;
  auto* build = data->add_subcommand("build", "Encode texts to PREFIX.bin and PREFIX.idx");
  add_inputs(*build, command);
  build->add_option("--out", command.out, "PREFIX of the data set")->required();
  build->add_option("--tokenizer", command.tokenizer, "bytes, a tokenizer.json, or a folder")
      ->capture_default_str();
  build->add_option("--threads", command.threads, "Threads that encode; 0: one for each core")
      ->check(CLI::Range(0, 256));
  build->add_flag("!--no-end-of-document", command.append_end,
                  "Put no token such as <|endoftext|> after a document");
  auto* learn = data->add_subcommand("tokenizer", "Learn a tokenizer (byte-level BPE) from texts");
  add_inputs(*learn, command);
  learn->add_option("--out", command.out, "The tokenizer.json to write")->required();
  learn->add_option("--vocabulary", command.vocabulary, "Tokens, 257 at least")
      ->capture_default_str();
  auto* inspect = data->add_subcommand("inspect", "Check a data set and say what is in it");
  inspect->add_option("prefix", command.out, "PREFIX of PREFIX.bin and PREFIX.idx")->required();
  for (auto* each : {build, learn, inspect}) {
    each->add_flag("--json", command.json, "Print one JSON object");
    add_log_options(*each, parsed);
  }
  build->callback([&command] { command.action = DataCommand::Action::kBuild; });
  learn->callback([&command] { command.action = DataCommand::Action::kLearn; });
  inspect->callback([&command] { command.action = DataCommand::Action::kInspect; });
  return data;
}

CLI::App* add_checkpoint(CLI::App& app, Parsed& parsed) {
  auto& command = parsed.checkpoint;
  auto* checkpoint = app.add_subcommand(
      "checkpoint", "Look at models, and bring them from and to Hugging Face's layout");
  checkpoint->require_subcommand(1);
  auto* inspect = checkpoint->add_subcommand("inspect", "Check a model's files and say what it is");
  inspect
      ->add_option("path", command.from,
                   "Run folder, checkpoint, or folder with a Hugging Face model")
      ->required();
  auto* exported = checkpoint->add_subcommand(
      "export", "Write a checkpoint's model in Hugging Face's layout, with its tokenizer");
  exported->add_option("checkpoint", command.from, "Run folder or checkpoint")->required();
  exported->add_option("folder", command.to, "The folder to write")->required();
  exported->add_option("--dtype", command.dtype, "fp32, bf16 or fp16")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}))
      ->capture_default_str();
  auto* imported = checkpoint->add_subcommand("import",
                                              "Make a Hugging Face model (GPT-2 or Llama) the "
                                              "beginning of a job: its checkpoint of step 0");
  imported->add_option("folder", command.from, "config.json, model.safetensors and so on")
      ->required();
  imported
      ->add_option(
          "job", command.to,
          "Job file; holmes train with it, the same --set and --resume then goes on from it")
      ->required();
  imported->add_option("--set", command.overrides, "Override a key of the job file")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  for (auto* each : {inspect, exported, imported}) {
    each->add_flag("--json", command.json, "Print one JSON object");
    add_log_options(*each, parsed);
  }
  inspect->callback([&command] { command.action = CheckpointCommand::Action::kInspect; });
  exported->callback([&command] { command.action = CheckpointCommand::Action::kExport; });
  imported->callback([&command] { command.action = CheckpointCommand::Action::kImport; });
  return checkpoint;
}

CLI::App* add_agent(CLI::App& app, Parsed& parsed) {
  auto* agent = app.add_subcommand(
      "agent",
      "Serve one host of a job; train and launch start it, or you do, for launch --via "
      "static");
  auto& command = parsed.agent;
  agent->add_option("--host", command.invitation.host_name,
                    "Name of the host in the cluster file; without it this machine's name");
  agent->add_option("--job,--rdzv-id", command.invitation.job, "Identity of the job")->required();
  agent->add_option("--coordinator,--rdzv-endpoint", command.invitation.coordinator,
                    "ADDRESS:PORT of the coordinator; without it $MASTER_ADDR:$MASTER_PORT");
  add_number(*agent, "--wait", command.wait_s,
             "Seconds to wait for a coordinator that is not there yet", 0U, 86400U)
      ->capture_default_str();
  agent->add_option("--credentials", command.credentials,
                    "Folder with this host's certificate, of holmes security issue; -: it comes "
                    "by standard input, as holmes launch sends it");
  add_log_options(*agent, parsed);
  return agent;
}

CLI::App* add_security(CLI::App& app, Parsed& parsed) {
  auto* security = app.add_subcommand("security", "Make certificates for agents that you start");
  security->require_subcommand(1);
  auto* issue = security->add_subcommand(
      "issue", "Make an authority for a job and a certificate for its coordinator and each host");
  auto& command = parsed.security;
  issue
      ->add_option("--job,--rdzv-id", command.job,
                   "Name of the job: launch and agents need the same")
      ->required();
  issue->add_option("--hosts", command.hosts, "Hostfile or list of hosts (a0,a1,b0)")->required();
  issue->add_option("folder", command.folder, "The folder to make")->required();
  add_number(*issue, "--days", command.days, "Days that they are valid", 1U, 3650U)
      ->capture_default_str();
  add_log_options(*issue, parsed);
  return security;
}

Finished usage_error(const std::string& what, const std::string& command) {
  const std::string name = command.empty() ? "holmes" : "holmes " + command;
  return {kExitUsage, "", name + ": " + what + "; see " + name + " --help"};
}

/// "unknown command 'trian'; did you mean 'train'?", or the same of an option.
Finished unknown_word(const CLI::App& app, const std::string& word) {
  const auto commands = app.get_subcommands();
  std::vector<std::string> names;
  if (commands.empty()) {
    for (const auto* command : app.get_subcommands({})) names.push_back(command->get_name());
  } else {
    for (const auto* option : commands.front()->get_options())
      for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  const bool is_option = word.starts_with("-");
  const std::string what = is_option          ? "unknown option '"
                           : commands.empty() ? "unknown command '"
                                              : "one argument too many: '";
  return usage_error(what + word + "'" + did_you_mean(word, views),
                     commands.empty() ? "" : commands.front()->get_name());
}

Finished from_cli11(const CLI::App& app, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
    if (const auto extras = app.remaining(true); !extras.empty())
      return unknown_word(app, extras.front());
  std::ostringstream out;
  std::ostringstream err;
  const bool asked = app.exit(error, out, err) == 0;  // help or version
  if (asked) return {kExitDone, out.str(), ""};
  const auto commands = app.get_subcommands();
  return usage_error(error.what(), commands.empty() ? "" : commands.front()->get_name());
}

/// Who reads JSON is told in JSON too.
Finished with_json(Finished finished, const std::vector<std::string>& arguments) {
  const bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  if (json && !finished.error.empty())
    finished.output = error_json(to_string(ErrorCode::kInvalidArgument), finished.error);
  return finished;
}

/// CLI11 takes "--prompt=" for "--prompt" and the next word for its value: an empty value has to
/// be a word of its own.
std::vector<std::string> with_empty_values(const CLI::App& app,
                                           const std::vector<std::string>& arguments) {
  const auto takes_value = [&](const std::string& name) {
    for (const auto* command : app.get_subcommands({}))
      if (const auto* option = command->get_option_no_throw(name); option != nullptr)
        return option->get_items_expected_min() > 0;
    return false;
  };
  std::vector<std::string> result;
  for (const auto& argument : arguments) {
    const std::string name = argument.substr(0, argument.size() - (argument.empty() ? 0 : 1));
    const bool empty_value = argument.starts_with("--") && argument.find('=') == name.size();
    if (!empty_value || !takes_value(name)) {
      result.push_back(argument);
      continue;
    }
    result.insert(result.end(), {name, ""});
  }
  return result;
}

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& arguments) {
  Parsed parsed;
  CLI::App app("Trains large language models on hosts whose NICs differ.", "holmes");
  app.set_version_flag("--version", "holmes " HOLMES_VERSION);
  app.footer(kFooter);
  app.require_subcommand(0, 1);  // a word that is no command is then named in the error
  const auto* train = add_train(app, parsed);
  const auto* launch = add_launch(app, parsed);
  const auto* plan = add_plan(app, parsed);
  const auto* simulate = add_simulate(app, parsed);
  const auto* generate = add_generate(app, parsed);
  const auto* bench = add_bench(app, parsed);
  const auto* nics = add_nics(app, parsed);
  const auto* data = add_data(app, parsed);
  const auto* checkpoint = add_checkpoint(app, parsed);
  const auto* security = add_security(app, parsed);
  add_agent(app, parsed);
  try {
    auto words = with_empty_values(app, arguments);
    std::reverse(words.begin(), words.end());
    app.parse(words);  // CLI11 takes them last first
  } catch (const CLI::ParseError& error) {
    return {with_json(from_cli11(app, error), arguments), {}};
  }
  const auto usage = [&](const char* what, const char* command) {
    return CommandLine{with_json(usage_error(what, command), arguments), parsed.log};
  };
  if (app.get_subcommands().empty()) return usage("which command?", "");
  // Agents log to files, where more is welcome than on the console of whoever trains.
  parsed.log.level = *parse_log_level(!parsed.log_level.empty()
                                          ? parsed.log_level
                                          : (app.got_subcommand("agent") ? "info" : "warning"));
  if (train->parsed()) {
    if (parsed.keys) return {ShowKeysCommand{}, parsed.log};
    if (parsed.train.job.empty()) return usage("which job file?", "train");
    return {parsed.train, parsed.log};
  }
  if (launch->parsed()) {
    if (parsed.launch.train.job.empty()) return usage("which job file?", "launch");
    if (parsed.launch_via == "local") parsed.launch.via = LaunchVia::kLocal;
    if (parsed.launch_via == "slurm") parsed.launch.via = LaunchVia::kSlurm;
    if (parsed.launch_via == "static") parsed.launch.via = LaunchVia::kStatic;
    return {parsed.launch, parsed.log};
  }
  if (plan->parsed()) {
    if (parsed.plan.job.empty()) return usage("which job file?", "plan");
    return {parsed.plan, parsed.log};
  }
  if (simulate->parsed()) {
    if (parsed.simulate.job.empty() && parsed.simulate.fit.empty())
      return {usage_error("which job file?", "simulate"), parsed.log};
    return {parsed.simulate, parsed.log};
  }
  if (security->parsed()) return {parsed.security, parsed.log};
  if (data->parsed()) return {parsed.data, parsed.log};
  if (checkpoint->parsed()) return {parsed.checkpoint, parsed.log};
  if (bench->parsed()) return {parsed.bench, parsed.log};
  if (nics->parsed()) return {parsed.nics, parsed.log};
  if (generate->parsed()) return {parsed.generate, parsed.log};
  return {parsed.agent, parsed.log};
}

std::vector<std::string> agent_arguments(const actors::AgentInvitation& invitation,
                                         const LogOptions& log, const std::string& credentials) {
  std::vector<std::string> arguments{"holmes",        "agent",
                                     "--host",        invitation.host_name,
                                     "--job",         invitation.job,
                                     "--coordinator", invitation.coordinator,
                                     "--log-level",   std::string(to_string(log.level))};
  if (log.json) arguments.emplace_back("--log-json");
  if (!credentials.empty()) arguments.insert(arguments.end(), {"--credentials", credentials});
  return arguments;
}

}  // namespace holmes::launcher
