#pragma once

// libibverbs, loaded when it is asked and never linked: one program for hosts with RDMA and
// without.

#include "holmes/transport/nics.hpp"

namespace holmes::transport::nics {

/// Fills verbs, or verbs_error.
void ask_verbs(MachineFacts& facts);

}  // namespace holmes::transport::nics
