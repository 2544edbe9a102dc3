#include "job_security.hpp"

#include "credentials.hpp"
#include "holmes/transport/tls.hpp"

namespace holmes::launcher {

Status secure(const actors::JobConfig& job, AgentStart& start) {
  if (!uses_tls(job) || !start.credentials.empty()) return {};
  if (start.by_others)
    return Error(ErrorCode::kInvalidArgument,
                 "--via static: agents that others start need certificates: make them with holmes "
                 "security issue and give the coordinator's with --credentials; on networks that "
                 "you trust, --insecure does without");
  if (start.job_name.empty()) {
    HOLMES_TRY_ASSIGN(start.job_name, transport::unique_job_name(job.run.name));
  }
  HOLMES_TRY_ASSIGN(auto made, transport::Authority::make(start.job_name));
  const auto authority = std::make_shared<const transport::Authority>(std::move(made));
  HOLMES_TRY_ASSIGN(start.credentials, authority->issue(""));
  start.input = [authority](const actors::AgentInvitation& agent) -> Result<std::string> {
    HOLMES_TRY_ASSIGN(const auto credentials, authority->issue(agent.host_name));
    return to_text(credentials);
  };
  return {};
}

}  // namespace holmes::launcher
