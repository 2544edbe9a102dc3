// Goal: command lines become the values they mean; wrong ones exit 2 and say what is wrong; help
// and version exit 0. An agent's command line reads back as it was written.
#include "cli.hpp"

#include <gmock/gmock.h>

#include "exit_codes.hpp"

namespace holmes::launcher {
namespace {

using testing::HasSubstr;

template <class T>
T parsed(const std::vector<std::string>& arguments) {
  auto line = parse_command_line(arguments);
  EXPECT_TRUE(std::holds_alternative<T>(line.command));
  return std::get<T>(line.command);
}

TEST(CommandLine, Train) {
  const auto command = parsed<TrainCommand>(
      {"train", "job.toml", "--set", "train.steps=5", "--set", "run.folder=x", "--resume"});
  EXPECT_EQ(command.job, "job.toml");
  EXPECT_THAT(command.overrides, testing::ElementsAre("train.steps=5", "run.folder=x"));
  EXPECT_TRUE(command.resume);
  EXPECT_FALSE(command.json);
}

TEST(CommandLine, TrainTakesWhatPlanTakesForKeys) {
  const std::vector<std::string> options{"job.toml", "--cluster",  "c.toml", "--strategy",
                                         "auto",     "--schedule", "gpipe"};
  std::vector<std::string> train{"train"};
  std::vector<std::string> plan{"plan"};
  train.insert(train.end(), options.begin(), options.end());
  plan.insert(plan.end(), options.begin(), options.end());
  EXPECT_THAT(parsed<TrainCommand>(train).overrides,
              testing::UnorderedElementsAre("cluster.file=c.toml", "parallel.strategy=auto",
                                            "parallel.schedule=gpipe"));
  EXPECT_EQ(parsed<TrainCommand>(train).overrides, parsed<PlanCommand>(plan).overrides);
}

TEST(CommandLine, OptionsMayComeBeforeTheJob) {
  const auto command =
      parsed<TrainCommand>({"train", "--set", "train.steps=5", "--json", "job.toml"});
  EXPECT_EQ(command.job, "job.toml");
  EXPECT_THAT(command.overrides, testing::ElementsAre("train.steps=5"));
  EXPECT_TRUE(command.json);
}

TEST(CommandLine, GenerateHasDefaultsAndChecks) {
  const auto command =
      parsed<GenerateCommand>({"generate", "--checkpoint", "runs/a", "--prompt", "In the"});
  EXPECT_EQ(command.prompt, "In the");
  EXPECT_GT(command.tokens, 0U);
  EXPECT_EQ(parsed<Finished>({"generate", "--prompt", "x"}).exit_code, 2);
  EXPECT_EQ(
      parsed<Finished>({"generate", "--checkpoint", "a", "--prompt", "x", "--temperature", "-1"})
          .exit_code,
      2);
}

TEST(CommandLine, BenchHasDefaultsAndChecks) {
  const auto command = parsed<BenchCommand>(
      {"bench", "allreduce", "--ranks", "3", "--bytes", "4096", "--algorithm", "ring", "--json"});
  EXPECT_EQ(command.what, "allreduce");
  EXPECT_EQ(command.ranks, 3U);
  EXPECT_EQ(command.bytes, 4096U);
  EXPECT_EQ(command.transport, "tcp");
  EXPECT_EQ(command.algorithm, "ring");
  EXPECT_TRUE(command.json);
  EXPECT_FALSE(command.busy_poll);
  EXPECT_EQ(parsed<Finished>({"bench"}).exit_code, 2);
  EXPECT_EQ(parsed<Finished>({"bench", "alltoall"}).exit_code, 2);
  EXPECT_EQ(parsed<Finished>({"bench", "p2p", "--seconds", "0"}).exit_code, 2);
  EXPECT_EQ(parsed<Finished>({"bench", "p2p", "--bulk-sockets", "17"}).exit_code, 2);
}

TEST(CommandLine, DataHasThreeActions) {
  const auto build = parsed<DataCommand>({"data", "build", "--tokenizer", "t", "--out", "p",
                                          "--key", "body", "--no-end-of-document", "a", "b"});
  EXPECT_EQ(build.action, DataCommand::Action::kBuild);
  EXPECT_EQ(build.source.inputs.size(), 2U);
  EXPECT_EQ(build.source.key, "body");
  EXPECT_FALSE(build.append_end);
  const auto learn =
      parsed<DataCommand>({"data", "tokenizer", "--out", "t.json", "--vocabulary", "300", "a"});
  EXPECT_EQ(learn.action, DataCommand::Action::kLearn);
  EXPECT_EQ(learn.vocabulary, 300U);
  EXPECT_EQ(parsed<DataCommand>({"data", "inspect", "p"}).out, "p");
  EXPECT_EQ(parsed<Finished>({"data"}).exit_code, 2);
  EXPECT_EQ(parsed<Finished>({"data", "build", "a"}).exit_code, 2);
}

TEST(CommandLine, PlanAndSimulateShareTheirOptions) {
  const std::vector<std::string> shared = {"--cluster",           "c.toml",
                                           "--strategy",          "auto",
                                           "--no-self-adapting",  "--no-nic-selection",
                                           "--blocking-transfers"};
  std::vector<std::string> arguments = {"simulate", "job.toml", "--steps",  "7",
                                        "--change", "a",        "--change", "b"};
  arguments.insert(arguments.end(), shared.begin(), shared.end());
  const auto simulated = parsed<SimulateCommand>(arguments);
  EXPECT_EQ(simulated.steps, 7U);
  EXPECT_THAT(simulated.changes, testing::ElementsAre("a", "b"));
  arguments = {"plan", "job.toml"};
  arguments.insert(arguments.end(), shared.begin(), shared.end());
  const auto planned = parsed<PlanCommand>(arguments);
  EXPECT_EQ(planned.overrides, simulated.overrides);
  for (const Ablations& ablations : {simulated.ablations, planned.ablations}) {
    EXPECT_FALSE(ablations.self_adapting);
    EXPECT_TRUE(ablations.overlapped_optimizer);
    EXPECT_FALSE(ablations.nic_selection);
    EXPECT_FALSE(ablations.overlapped_transfers);
  }
  EXPECT_EQ(parsed<Finished>({"simulate", "job.toml", "--steps", "0"}).exit_code, 2);
}

TEST(CommandLine, WrongUsageExits2AndNamesIt) {
  for (const auto& [arguments, what] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"trian"}, "holmes: unknown command 'trian'; did you mean 'train'?; see holmes --help"},
           {{"--verison"}, "unknown option '--verison'"},
           {{"train", "job.toml", "more"}, "one argument too many: 'more'"},
           {{}, "which command"},
           {{"train"}, "which job file"},
           {{"plan"}, "which job file"},
           {{"simulate"}, "which job file"},
           {{"train", "job.toml", "--rseume"},
            "holmes train: unknown option '--rseume'; did you mean '--resume'?"},
           {{"train", "job.toml", "--resume", "--overwrite"}, "--resume"},
           {{"train", "job.toml", "--log-level", "loud"}, "loud"}}) {
    const auto finished = parsed<Finished>(arguments);
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_THAT(finished.error, HasSubstr(what));
    EXPECT_EQ(finished.output, "");
  }
}

TEST(CommandLine, NumbersAreWholeInRangeAndThere) {
  for (const char* option : {"--tokens", "--top-k", "--seed", "--temperature"})
    for (const char* value :
         {"", "-1", "x", "1x", " 1", "0x10", "nan", "inf", "99999999999999999999"}) {
      const auto finished =
          parsed<Finished>({"generate", "--checkpoint", "a", "--prompt", "x", option, value});
      EXPECT_EQ(finished.exit_code, 2) << option << " " << value;
      EXPECT_THAT(finished.error, HasSubstr(std::string(option) + ": wants a "));
      EXPECT_THAT(finished.error, testing::Not(HasSubstr("\n")));
    }
  const auto most = parsed<GenerateCommand>({"generate", "--checkpoint", "a", "--prompt", "x",
                                             "--seed", "18446744073709551615", "--tokens", "0"});
  EXPECT_EQ(most.seed, 18446744073709551615U);
  EXPECT_EQ(most.tokens, 0U);
}

TEST(CommandLine, AnEmptyValueAfterEqualsIsAValue) {
  const auto command =
      parsed<GenerateCommand>({"generate", "--checkpoint", "a", "--prompt=", "--tokens", "3"});
  EXPECT_EQ(command.prompt, "");
  EXPECT_EQ(command.tokens, 3U);
}

TEST(CommandLine, WhoReadsJsonIsToldInJson) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"plan", "--json"},
                                                    {"train", "a", "--json", "--rseume"},
                                                    {"bench", "--json", "alltoall"}}) {
    const auto finished = parsed<Finished>(arguments);
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_THAT(finished.output, HasSubstr(R"({"event":"error","code":"invalid_argument")"));
  }
}

TEST(CommandLine, HelpAndVersionGoToStdout) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--help"},
                                                    {"train", "--help"},
                                                    {"plan", "--help"},
                                                    {"nics", "--help"},
                                                    {"generate", "--help"},
                                                    {"agent", "--help"}}) {
    const auto finished = parsed<Finished>(arguments);
    EXPECT_EQ(finished.exit_code, 0);
    EXPECT_THAT(finished.output, HasSubstr("--help"));
  }
  EXPECT_THAT(parsed<Finished>({"--version"}).output, testing::StartsWith("holmes 0."));
  EXPECT_THAT(parsed<Finished>({"--help"}).output, HasSubstr("Exit codes"));
}

TEST(CommandLine, KeysNeedNoJob) {
  parsed<ShowKeysCommand>({"train", "--keys"});
}

TEST(CommandLine, AgentsReadBackWhatTheyAreTold) {
  const actors::AgentInvitation invitation{HostId(3), "a 3", "4f2a", "127.0.0.1:29400"};
  auto arguments = agent_arguments(invitation, {true, LogLevel::kDebug});
  ASSERT_EQ(arguments.front(), "holmes");
  arguments.erase(arguments.begin());
  const auto line = parse_command_line(arguments);
  const auto& agent = std::get<AgentCommand>(line.command);
  EXPECT_EQ(agent.invitation.host_name, "a 3");
  EXPECT_EQ(agent.invitation.job, "4f2a");
  EXPECT_EQ(agent.invitation.coordinator, "127.0.0.1:29400");
  EXPECT_TRUE(line.log.json);
  EXPECT_EQ(line.log.level, LogLevel::kDebug);
  EXPECT_EQ(agent.credentials, "");
}

TEST(CommandLine, AgentsAreToldWhereTheirCredentialsAre) {
  auto arguments = agent_arguments({HostId(3), "a3", "4f2a", "127.0.0.1:1"}, {}, "-");
  arguments.erase(arguments.begin());
  const auto line = parse_command_line(arguments);
  EXPECT_EQ(std::get<AgentCommand>(line.command).credentials, "-");
}

TEST(CommandLine, SecurityIssue) {
  const auto issue = parsed<SecurityCommand>(
      {"security", "issue", "--job", "demo", "--hosts", "a0,b0", "--days", "7", "folder"});
  EXPECT_EQ(issue.job, "demo");
  EXPECT_EQ(issue.hosts, "a0,b0");
  EXPECT_EQ(issue.days, 7U);
  EXPECT_EQ(issue.folder, "folder");
}

TEST(CommandLine, LaunchIsTrainOnOtherHosts) {
  const auto launch = parsed<LaunchCommand>({"launch",
                                             "a.toml",
                                             "--insecure",
                                             "--hosts",
                                             "a0,b0",
                                             "--exclude",
                                             "b0",
                                             "--via",
                                             "static",
                                             "--env",
                                             "A=1",
                                             "--env",
                                             "B",
                                             "--rdzv-endpoint",
                                             "h:1",
                                             "--rdzv-id",
                                             "id",
                                             "--wait",
                                             "7",
                                             "--ssh",
                                             "ssh -p 22",
                                             "--remote-executable",
                                             "/opt/holmes",
                                             "--set",
                                             "train.steps=3",
                                             "--resume",
                                             "--json"});
  EXPECT_EQ(launch.train.job, "a.toml");
  EXPECT_THAT(launch.train.overrides,
              testing::UnorderedElementsAre("transport.security=none", "train.steps=3"));
  EXPECT_TRUE(launch.train.resume && launch.train.json && !launch.train.overwrite);
  EXPECT_EQ(launch.hosts, "a0,b0");
  EXPECT_EQ(launch.exclude, "b0");
  EXPECT_EQ(launch.via, LaunchVia::kStatic);
  EXPECT_THAT(launch.environment, testing::ElementsAre("A=1", "B"));
  EXPECT_EQ(launch.rendezvous, "h:1");
  EXPECT_EQ(launch.job_id, "id");
  EXPECT_EQ(launch.wait_s, 7U);
  EXPECT_EQ(launch.ssh, "ssh -p 22");
  EXPECT_EQ(launch.executable, "/opt/holmes");
  EXPECT_EQ(parsed<LaunchCommand>({"launch", "a.toml"}).via, LaunchVia::kSsh);
}

TEST(CommandLine, LaunchRefusesWhatMakesNoSense) {
  const auto refusal = [](const std::vector<std::string>& arguments) {
    const auto finished = parsed<Finished>(arguments);
    EXPECT_EQ(finished.exit_code, kExitUsage);
    return finished.error;
  };
  EXPECT_THAT(refusal({"launch"}), HasSubstr("which job file?"));
  EXPECT_THAT(refusal({"launch", "a", "--via", "pigeon"}), HasSubstr("--via"));
  EXPECT_THAT(refusal({"launch", "a", "--include", "a0"}), HasSubstr("--hosts"));
  EXPECT_THAT(refusal({"launch", "a", "--wait", "0"}), HasSubstr("1 .. 86400"));
}

TEST(CommandLine, ConsoleIsQuieterThanAgents) {
  EXPECT_EQ(parse_command_line({"train", "a.toml"}).log.level, LogLevel::kWarning);
  EXPECT_EQ(
      parse_command_line({"agent", "--host", "0", "--job", "a", "--coordinator", "b"}).log.level,
      LogLevel::kInfo);
}

}  // namespace
}  // namespace holmes::launcher
