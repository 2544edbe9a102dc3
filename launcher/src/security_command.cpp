#include "security_command.hpp"

#include "credentials.hpp"
#include "exit_codes.hpp"
#include "failure.hpp"
#include "holmes/transport/tls.hpp"
#include "hostfile.hpp"

namespace holmes::launcher {
namespace {

/// A folder of its own: a host's name may have any letters, but not lead elsewhere.
Status check_name(const std::string& host) {
  if (host.find('/') == std::string::npos && host != "." && host != ".." && host != "coordinator")
    return {};
  return Error(ErrorCode::kInvalidArgument,
               "--hosts: a host named '" + host + "' cannot have a folder of that name");
}

Status try_issue(const SecurityCommand& command, Console& console) {
  HOLMES_TRY_ASSIGN(const auto hosts, read_hosts(command.hosts));
  for (const auto& host : hosts) HOLMES_TRY(check_name(host.name));
  transport::Validity validity;
  validity.to = std::chrono::days(command.days);
  HOLMES_TRY_ASSIGN(const auto authority, transport::Authority::make(command.job, validity));
  const auto issue = [&](const std::string& host, const std::string& name) -> Status {
    HOLMES_TRY_ASSIGN(const auto credentials, authority.issue(host, validity));
    const auto folder = command.folder / name;
    HOLMES_TRY(write_credentials(folder, credentials));
    console.print(folder.string() + "\n");
    return {};
  };
  HOLMES_TRY(issue("", "coordinator"));
  for (const auto& host : hosts) HOLMES_TRY(issue(host.name, host.name));
  return {};
}

}  // namespace

int security(const SecurityCommand& command, Console& console) {
  const auto issued = try_issue(command, console);
  return issued ? kExitDone : report_failure(issued.error(), console);
}

}  // namespace holmes::launcher
