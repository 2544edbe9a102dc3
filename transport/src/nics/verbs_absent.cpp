// Built where rdma-core's headers are not installed.
#include "nics/verbs_library.hpp"

namespace holmes::transport::nics {

void ask_verbs(MachineFacts& facts) {
  facts.verbs_error = "this program was built without RDMA (libibverbs-dev was not installed)";
}

}  // namespace holmes::transport::nics
