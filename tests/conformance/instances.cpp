// The backends that the suite runs on.
#include "suite.hpp"

namespace holmes::transport::conformance {

std::vector<Backend> backends() {
  return {{"tcp", [] { return make_tcp_world(false); }},
          {"tcp_checksum", [] { return make_tcp_world(true); }},
          {"tcp_striped", [] { return make_tcp_world(false, 3); }},
          {"tcp_striped_checksum", [] { return make_tcp_world(true, 2); }},
          {"tcp_tls", [] { return make_tls_world(); }},
          {"tcp_tls_striped", [] { return make_tls_world(3); }},
          {"tcp_shaped", [] { return make_shaped_tcp_world(); }},
          {"sim", [] { return make_sim_world(); }},
          {"sim_shaped", [] { return make_shaped_sim_world(); }}};
}

INSTANTIATE_TEST_SUITE_P(Backends, Suite, ::testing::ValuesIn(backends()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace holmes::transport::conformance
