#include "agent_start.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <map>

#include <unistd.h>

#include "credentials.hpp"
#include "holmes/base/address.hpp"
#include "place.hpp"
#include "ssh.hpp"

namespace holmes::launcher {
namespace {

using actors::JobConfig;

Error invalid(std::string what) {
  return Error(ErrorCode::kInvalidArgument, std::move(what));
}

/// Where agents join, if the user says it.
Status use_rendezvous(const std::string& endpoint, JobConfig& job) {
  if (endpoint.empty()) return {};
  const auto found = look_up_endpoint(endpoint);
  if (!found) return found.error().in("--rdzv-endpoint");
  const auto colon = found->rfind(':');
  job.transport.listen = found->substr(0, colon);
  if (job.transport.listen == "0.0.0.0" || job.transport.listen == "[::]")
    return invalid("--rdzv-endpoint: agents cannot dial " + job.transport.listen +
                   "; name an address of this machine that they reach");
  const std::string port = found->substr(colon + 1);
  char* end = nullptr;
  const unsigned long number = std::strtoul(port.c_str(), &end, 10);
  if (*end != '\0' || number == 0 || number > 65535)
    return invalid("--rdzv-endpoint: '" + port + "' is no port, 1 .. 65535");
  job.transport.port = static_cast<std::uint32_t>(number);
  return {};
}

Result<std::string> this_executable() {
  std::array<char, PATH_MAX> path{};
  const auto bytes = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (bytes < 0) return system_error("cannot tell where holmes is", errno);
  return std::string(path.data(), static_cast<std::size_t>(bytes));
}

/// NAME alone means: as it is here.
Result<std::vector<std::string>> environment_of(const std::vector<std::string>& variables) {
  std::vector<std::string> result;
  for (const auto& variable : variables) {
    const auto equals = variable.find('=');
    if (variable.empty() || equals == 0) return invalid("--env: '" + variable + "' has no name");
    const char* const value = equals == std::string::npos ? std::getenv(variable.c_str()) : "";
    if (value == nullptr)
      return invalid("--env: " + variable + " is not set here; write NAME=VALUE");
    result.push_back(equals == std::string::npos ? variable + "=" + value : variable);
  }
  return result;
}

std::string target_of(const partition::Host& host) {
  return host.address.empty() ? host.name : host.address;
}

/// What ssh is given for each host; empty for those that are this machine.
using Targets = std::map<HostId, std::string>;

/// The coordinator listens where the first other machine can reach it, unless the job says where.
Result<Targets> find_hosts(const SshOptions& ssh, bool endpoint_given, JobConfig& job) {
  auto& listen = job.transport.listen;
  const bool given = endpoint_given || !is_loopback(listen);
  Targets targets;
  for (std::uint32_t host = 0; host < job.cluster.hosts.size(); ++host) {
    const auto& about = job.cluster.hosts[host];
    const std::string target = target_of(about);
    const auto reached = reach(ssh, target);
    if (!reached && !given)
      return reached.error().in("host " + about.name +
                                ": cannot tell which address of this machine it can dial (set it "
                                "with --rdzv-endpoint ADDRESS:PORT, or the host's address in the "
                                "cluster file)");
    targets[HostId(host)] = reached ? reached->target : target;
    if (reached && !reached->target.empty() && !given && is_loopback(listen)) listen = reached->own;
  }
  return targets;
}

Result<AgentStart> start_by_ssh(const LaunchCommand& command, JobConfig& job) {
  SshOptions options;
  options.command = command.ssh;
  HOLMES_TRY_ASSIGN(options.executable, command.executable.empty()
                                            ? this_executable()
                                            : Result<std::string>(command.executable));
  HOLMES_TRY_ASSIGN(options.environment, environment_of(command.environment));
  HOLMES_TRY_ASSIGN(auto targets, find_hosts(options, !command.rendezvous.empty(), job));
  AgentStart start;
  start.executable = "/bin/sh";
  start.words = [options, targets](HostId host, const std::vector<std::string>& words) {
    return start_words(options, targets.at(host), words);
  };
  return start;
}

/// The node of each host, which goes by the host's name or address.
Result<std::map<HostId, SlurmNode>> nodes_of(const partition::Cluster& cluster,
                                             const SlurmAllocation& slurm) {
  std::map<HostId, SlurmNode> nodes;
  for (std::uint32_t number = 0; number < cluster.hosts.size(); ++number) {
    const auto& host = cluster.hosts[number];
    const auto node = std::find_if(slurm.nodes.begin(), slurm.nodes.end(), [&](const auto& each) {
      return each.name == host.name || each.name == host.address;
    });
    if (node == slurm.nodes.end())
      return invalid("host " + host.name + " is no node of this Slurm job");
    nodes[HostId(number)] = *node;
  }
  return nodes;
}

/// The coordinator listens where another node can reach it, unless the job says where.
Status listen_for_nodes(const std::map<HostId, SlurmNode>& nodes, JobConfig& job) {
  for (const auto& [host, node] : nodes) {
    HOLMES_TRY_ASSIGN(const auto address, node_address(node.name));
    HOLMES_TRY_ASSIGN(const auto place, place_of(address));
    if (place.here) continue;
    job.transport.listen = place.own;
    return {};
  }
  return {};
}

Result<AgentStart> start_by_srun(const LaunchCommand& command, const SlurmAllocation& slurm,
                                 JobConfig& job) {
  SlurmStep step;
  HOLMES_TRY_ASSIGN(step.executable, command.executable.empty()
                                         ? this_executable()
                                         : Result<std::string>(command.executable));
  HOLMES_TRY_ASSIGN(step.environment, environment_of(command.environment));
  HOLMES_TRY_ASSIGN(const auto nodes, nodes_of(job.cluster, slurm));
  if (command.rendezvous.empty() && is_loopback(job.transport.listen))
    HOLMES_TRY(listen_for_nodes(nodes, job));
  AgentStart start;
  start.executable = "/bin/sh";
  start.words = [step, nodes](HostId host, const std::vector<std::string>& words) {
    return srun_words(step, nodes.at(host), words);
  };
  return start;
}

std::string names_of(const partition::Cluster& cluster) {
  std::string names;
  for (const auto& host : cluster.hosts) names += (names.empty() ? "" : ", ") + host.name;
  return names;
}

Result<AgentStart> start_by_others(const LaunchCommand& command, const JobConfig& job,
                                   Console& console) {
  if (command.job_id.empty())
    return invalid("--via static: give the job a name that its agents know too: --rdzv-id NAME");
  if (job.transport.port == 0)
    return invalid("--via static: say where agents find the job: --rdzv-endpoint ADDRESS:PORT");
  AgentStart start;
  start.by_others = true;
  console.log("holmes: waiting " + std::to_string(command.wait_s) + " s for " +
              names_of(job.cluster) + "; on each host: holmes agent --host NAME --rdzv-id " +
              command.job_id + " --rdzv-endpoint " +
              with_port(job.transport.listen, job.transport.port) +
              (uses_tls(job) ? " --credentials FOLDER" : ""));
  return start;
}

}  // namespace

Result<AgentStart> agent_start(const LaunchCommand& command, const SlurmAllocation& slurm,
                               JobConfig& job, Console& console) {
  HOLMES_TRY(use_rendezvous(command.rendezvous, job));
  AgentStart start;
  switch (command.via) {
    case LaunchVia::kSsh: {
      HOLMES_TRY_ASSIGN(start, start_by_ssh(command, job));
      break;
    }
    case LaunchVia::kSlurm: {
      HOLMES_TRY_ASSIGN(start, start_by_srun(command, slurm, job));
      break;
    }
    case LaunchVia::kStatic: {
      HOLMES_TRY_ASSIGN(start, start_by_others(command, job, console));
      break;
    }
    case LaunchVia::kLocal:
      break;
  }
  start.job_name = command.job_id;
  if (!command.credentials.empty()) {
    if (!start.by_others)
      return invalid("--credentials: only for --via static; else every job makes its own");
    HOLMES_TRY_ASSIGN(start.credentials, read_credentials(command.credentials));
  }
  start.join_deadline = std::chrono::seconds(command.wait_s);
  return start;
}

}  // namespace holmes::launcher
