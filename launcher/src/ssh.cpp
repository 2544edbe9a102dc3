#include "ssh.hpp"

#include <sstream>

#include "place.hpp"
#include "shell.hpp"

namespace holmes::launcher {
namespace {

// Ten seconds after the start of a job every host that cannot be reached has been named.
constexpr const char* kConnectTimeout = "ConnectTimeout=8";
// A host that is gone without a word ends its ssh, so that its agent can be started again.
constexpr const char* kAliveInterval = "ServerAliveInterval=5";
constexpr const char* kAliveCount = "ServerAliveCountMax=3";

/// What the user's configuration makes of a target.
struct Dialled {
  std::string name;
  bool directly = true;  ///< To the usual port, by no proxy.
};
Dialled dialled(const SshOptions& options, const std::string& target) {
  std::istringstream settings(
      output_of(options.command + " -G -- " + shell_quoted(target) + " 2>/dev/null"));
  Dialled result{target};
  for (std::string line; std::getline(settings, line);) {
    const auto space = line.find(' ');
    if (space == std::string::npos) continue;
    const std::string key = line.substr(0, space);
    const std::string value = line.substr(space + 1);
    if (key == "hostname") result.name = value;
    if (key == "port" && value != "22") result.directly = false;
    if ((key == "proxyjump" || key == "proxycommand") && value != "none") result.directly = false;
  }
  return result;
}

}  // namespace

std::vector<std::string> start_words(const SshOptions& options, const std::string& target,
                                     const std::vector<std::string>& words) {
  std::string command = "exec env";
  for (const auto& variable : options.environment) command += " " + shell_quoted(variable);
  command += " " + shell_quoted(options.executable);
  for (std::size_t i = 1; i < words.size(); ++i) command += " " + shell_quoted(words[i]);
  if (target.empty()) return {"sh", "-c", command};
  const std::string ssh = "exec " + options.command + " \"$@\"";
  return {
      "sh", "-c",           ssh,  "ssh",       "-T", "-o",   "BatchMode=yes", "-o", kConnectTimeout,
      "-o", kAliveInterval, "-o", kAliveCount, "--", target, command};
}

Result<Reached> reach(const SshOptions& options, const std::string& target) {
  const auto [name, directly] = dialled(options, target);
  HOLMES_TRY_ASSIGN(auto place, place_of(name));
  return Reached{directly && place.here ? "" : target, std::move(place.address),
                 std::move(place.own)};
}

}  // namespace holmes::launcher
