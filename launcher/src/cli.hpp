#pragma once

// The command line of `holmes` as a value. It reads no files and writes nothing.

#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "ablations.hpp"
#include "bench/bench.hpp"
#include "checkpoint_command.hpp"
#include "data_command.hpp"
#include "holmes/actors/session.hpp"
#include "log_sink.hpp"
#include "nics.hpp"
#include "security_command.hpp"

namespace holmes::launcher {

struct TrainCommand {
  std::filesystem::path job;
  std::vector<std::string> overrides;  ///< "train.steps=100"
  bool resume = false;
  bool overwrite = false;
  bool json = false;
  partition::NcclOverrides nccl = {};  ///< From the environment: main() fills it.
};
enum class LaunchVia : std::uint8_t {
  kSsh,
  kLocal,   ///< Processes of this machine, with emulated NICs.
  kSlurm,   ///< srun, in an allocation.
  kStatic,  ///< Others start the agents.
};
struct LaunchCommand {
  TrainCommand train;
  std::string hosts;  ///< A hostfile or a list; empty: all of the cluster file.
  std::string include;
  std::string exclude;
  LaunchVia via = LaunchVia::kSsh;
  std::string ssh = "ssh";
  std::string executable;                     ///< Of holmes on the hosts; empty: where it is here.
  std::vector<std::string> environment = {};  ///< "NAME=VALUE" or "NAME", for the agents.
  std::string rendezvous;                     ///< "ADDRESS:PORT"; empty: found.
  std::string job_id;                         ///< Empty: made.
  std::string credentials;                    ///< Folder of the coordinator's; empty: made.
  std::uint32_t wait_s = 30;                  ///< For hosts to join.
};
struct ShowKeysCommand {};
struct PlanCommand {
  std::filesystem::path job;
  std::vector<std::string> overrides;
  bool json = false;
  bool explain = false;  ///< Also what came second.
  bool compare = false;  ///< A table of all strategies instead of one plan.
  partition::NcclOverrides nccl = {};
  Ablations ablations = {};
};
struct SimulateCommand {
  std::filesystem::path job;
  std::vector<std::string> overrides;
  bool json = false;
  std::uint32_t steps = 2;
  std::filesystem::path trace = {};  ///< Empty: none is written.
  std::filesystem::path svg = {};
  std::vector<std::string> changes = {};  ///< "host a0 at 40 s dies"
  std::filesystem::path changes_file = {};
  double recovery_s = 3;
  std::filesystem::path fit = {};  ///< Not empty: measured cells, and no job.
  Ablations ablations = {};
  partition::NcclOverrides nccl = {};
};
struct GenerateCommand {
  std::filesystem::path checkpoint;
  std::string prompt;
  std::uint32_t tokens = 400;
  double temperature = 0.8;
  std::uint32_t top_k = 40;
  std::uint64_t seed = 1;
};
struct AgentCommand {
  actors::AgentInvitation invitation;  ///< What is empty, main() fills from the environment.
  std::uint32_t wait_s = 0;            ///< For somebody to listen at the coordinator's address.
  std::string credentials = {};        ///< A folder, or "-": standard input; empty: none.
};
/// Nothing to run: help, version or a usage error.
struct Finished {
  int exit_code = 0;
  std::string output;  ///< For stdout.
  std::string error;   ///< For stderr.
};

struct CommandLine {
  std::variant<Finished, TrainCommand, LaunchCommand, ShowKeysCommand, PlanCommand, SimulateCommand,
               GenerateCommand, BenchCommand, NicsCommand, DataCommand, CheckpointCommand,
               SecurityCommand, AgentCommand>
      command;
  LogOptions log;
};

/// `arguments` without the program's name.
CommandLine parse_command_line(const std::vector<std::string>& arguments);

/// The command line of an agent, from argv[0] on: what parse_command_line() reads back.
/// `credentials`: where it finds them; empty: it needs none.
std::vector<std::string> agent_arguments(const actors::AgentInvitation& invitation,
                                         const LogOptions& log,
                                         const std::string& credentials = "");

}  // namespace holmes::launcher
