#pragma once

// A World is two NICs of two hosts that can reach each other, on one backend, driven by the test's
// own thread. The suite knows nothing else of a backend.

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "holmes/transport/connection.hpp"
#include "holmes/transport/shaped.hpp"

namespace holmes::transport::conformance {

class World {
 public:
  virtual ~World() = default;
  /// Side 0 is host 0, side 1 is host 1.
  virtual Context& context(int side) = 0;
  /// Where side `side` may listen.
  virtual Endpoint address(int side) = 0;
  /// A place where nobody listens.
  virtual Endpoint nobody() = 0;
  /// Runs tasks until `done`; false when that does not happen in a generous time.
  virtual bool run_until(const std::function<bool()>& done) = 0;
  /// Runs until what was begun has had time to show its effect.
  virtual void settle() = 0;
};

struct Backend {
  std::string name;
  std::function<std::unique_ptr<World>()> make;

  /// For GoogleTest, whose own way is bytes.
  friend std::ostream& operator<<(std::ostream& out, const Backend& backend) {
    return out << backend.name;
  }
};

/// What the decorated worlds are shaped to.
inline const ShapeOptions kConformanceShape{20.0, std::chrono::microseconds(200)};

/// `bulk_sockets` of each link: more than one are striped.
std::unique_ptr<World> make_tcp_world(bool checksum, std::uint8_t bulk_sockets = 1);
/// Under mutual TLS.
std::unique_ptr<World> make_tls_world(std::uint8_t bulk_sockets = 1);
std::unique_ptr<World> make_sim_world();
/// The same worlds with every context under the shaping decorator.
std::unique_ptr<World> make_shaped_tcp_world();
std::unique_ptr<World> make_shaped_sim_world();

/// All of them.
std::vector<Backend> backends();

}  // namespace holmes::transport::conformance
