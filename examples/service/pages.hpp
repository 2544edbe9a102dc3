#pragma once

// What the service answers to whom. It owns nothing: session, metrics and generator outlive the
// server.

#include <httplib.h>

#include "generator.hpp"
#include "holmes/actors/session.hpp"
#include "metrics.hpp"

namespace service {

struct Parts {
  holmes::actors::Session& session;
  const Metrics& metrics;
  Generator& generator;
};

/// GET /status, /metrics and /generate, POST /stop.
void add_pages(httplib::Server& server, Parts parts);

}  // namespace service
