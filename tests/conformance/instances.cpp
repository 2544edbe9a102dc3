// The backends that the suite runs on.
#include "suite.hpp"

namespace holmes::transport::conformance {

INSTANTIATE_TEST_SUITE_P(
    Backends, Suite,
    ::testing::Values(Backend{"tcp", [] { return make_tcp_world(false); }},
                      Backend{"tcp_checksum", [] { return make_tcp_world(true); }},
                      Backend{"tcp_shaped", [] { return make_shaped_tcp_world(); }},
                      Backend{"sim", [] { return make_sim_world(); }},
                      Backend{"sim_shaped", [] { return make_shaped_sim_world(); }}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace holmes::transport::conformance
