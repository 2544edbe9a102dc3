#pragma once

// A decorator that makes any Context as slow as the NIC it stands for: a rate for each direction,
// shared by all its connections, and a latency held at the receiver. Control passes ahead of bulk
// but takes its share of the rate. It adds to what the backend below costs, so it can only slow
// down; both ends of a path must be shaped for latency in both directions.

#include <memory>

#include "holmes/transport/connection.hpp"

namespace holmes::transport {

struct ShapeOptions {
  double gbit_s = 0;   ///< Each direction; 0: as fast as the backend is.
  Duration latency{};  ///< One way, of everything that arrives here.
};

class ShapedContext : public Context {
 public:
  /// From a task of the executor: changes the shape of what is sent and received from now on.
  virtual void set_shape(const ShapeOptions& options) = 0;
};

/// Connections of the result may outlive it. The inner context's executor must outlive them.
std::unique_ptr<ShapedContext> make_shaped_context(std::unique_ptr<Context> inner,
                                                   const ShapeOptions& options);

}  // namespace holmes::transport
