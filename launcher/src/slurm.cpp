#include "slurm.hpp"

#include <cstdlib>
#include <sstream>

#include "shell.hpp"

namespace holmes::launcher {
namespace {

constexpr std::size_t kNodesMax = 65536;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Error invalid(std::string what) {
  return Error(ErrorCode::kInvalidArgument, std::move(what));
}

/// All digits of `text` as a number from 1 to kNodesMax; 0 where it is none.
std::uint32_t positive(const std::string& text) {
  if (text.empty() || text.size() > 5 || text.find_first_not_of("0123456789") != std::string::npos)
    return 0;
  return static_cast<std::uint32_t>(std::stoul(text));
}

Result<std::vector<std::string>> node_names(const std::string& nodelist) {
  std::istringstream lines(
      output_of("scontrol show hostnames " + shell_quoted(nodelist) + " 2>/dev/null"));
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) names.push_back(line);
  if (names.empty())
    return Error(ErrorCode::kUnavailable, "scontrol show hostnames " + nodelist +
                                              " names no node; are Slurm's commands in PATH?");
  return names;
}

}  // namespace

Result<std::vector<std::uint32_t>> parse_cpus_per_node(const std::string& text) {
  const auto wrong = [&] { return invalid("SLURM_JOB_CPUS_PER_NODE is '" + text + "'"); };
  std::vector<std::uint32_t> cpus;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto open = part.find("(x");
    const bool repeated = open != std::string::npos;
    if (repeated && part.back() != ')') return wrong();
    const std::uint32_t each = positive(part.substr(0, open));
    const std::uint32_t times =
        repeated ? positive(part.substr(open + 2, part.size() - open - 3)) : 1;
    if (each == 0 || times == 0 || cpus.size() + times > kNodesMax) return wrong();
    cpus.insert(cpus.end(), times, each);
  }
  if (cpus.empty()) return wrong();
  return cpus;
}

Result<SlurmAllocation> slurm_allocation() {
  const std::string nodelist = variable("SLURM_JOB_NODELIST");
  if (nodelist.empty())
    return invalid(
        "--via slurm: this is no Slurm job (SLURM_JOB_NODELIST is not set); put the command into a "
        "script for sbatch, or run it under salloc");
  HOLMES_TRY_ASSIGN(const auto names, node_names(nodelist));
  HOLMES_TRY_ASSIGN(const auto cpus, parse_cpus_per_node(variable("SLURM_JOB_CPUS_PER_NODE")));
  if (cpus.size() != names.size())
    return invalid("Slurm names " + std::to_string(names.size()) + " nodes (" + nodelist +
                   "), but SLURM_JOB_CPUS_PER_NODE is for " + std::to_string(cpus.size()));
  SlurmAllocation allocation;
  for (std::size_t i = 0; i < names.size(); ++i) allocation.nodes.push_back({names[i], cpus[i]});
  allocation.again = positive(variable("SLURM_RESTART_COUNT")) > 0;
  return allocation;
}

Result<std::string> node_address(const std::string& node) {
  std::istringstream words(
      output_of("scontrol --oneliner show node " + shell_quoted(node) + " 2>/dev/null"));
  const std::string key = "NodeAddr=";
  for (std::string word; words >> word;)
    if (word.rfind(key, 0) == 0 && word.size() > key.size()) return word.substr(key.size());
  return Error(ErrorCode::kUnavailable,
               "scontrol show node " + node + " says no NodeAddr; does the controller answer?");
}

std::vector<std::string> srun_words(const SlurmStep& step, const SlurmNode& node,
                                    const std::vector<std::string>& words) {
  // What sbatch was told of tasks is about its own; this is one task on one node, beside others.
  // Its
  // --export=NONE would leave a step without PATH.
  std::vector<std::string> command = {"sh",
                                      "-c",
                                      "unset SLURM_NTASKS_PER_NODE SLURM_TRES_PER_TASK "
                                      "SLURM_DISTRIBUTION; exec srun \"$@\"",
                                      "srun",
                                      "--export=ALL",
                                      "--nodes=1",
                                      "--ntasks=1",
                                      "--overlap",
                                      "--nodelist=" + node.name,
                                      "--cpus-per-task=" + std::to_string(node.cpus),
                                      "--"};
  command.emplace_back("env");
  command.insert(command.end(), step.environment.begin(), step.environment.end());
  command.push_back(step.executable);
  command.insert(command.end(), words.begin() + 1, words.end());
  return command;
}

}  // namespace holmes::launcher
