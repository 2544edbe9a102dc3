#pragma once

// What a job whose connections are under TLS needs before it starts: an authority of its own, the
// coordinator's credentials, and some for each agent, made when the agent is started (again). The
// authority's key is in this process's memory alone and is gone with it.

#include "train.hpp"

namespace holmes::launcher {

/// Gives `start` what uses_tls(job) asks for and it does not have; nothing where the job is plain.
/// kInvalidArgument: agents that others start need credentials that were made before.
Status secure(const actors::JobConfig& job, AgentStart& start);

}  // namespace holmes::launcher
