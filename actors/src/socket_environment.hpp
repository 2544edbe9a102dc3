#pragma once

// The HostEnvironment of production: sockets on one event loop, a compute thread for each device, a
// disk thread, files.

#include <memory>

#include "holmes/base/log.hpp"
#include "holmes/transport/tcp.hpp"
#include "host_environment.hpp"

namespace holmes::actors {

/// `loop` must outlive the environment. transport.nics = "loopback": NIC n of host h is 127.h.n.1,
/// held to the rate and latency of the cluster file when emulation is on. "interfaces": what
/// addresses.hpp finds.
/// `tls`: of all connections of jobs that use it; null: there is none.
std::unique_ptr<HostEnvironment> make_socket_environment(
    transport::EventLoop& loop, Logger log, std::shared_ptr<const transport::Tls> tls = nullptr);

}  // namespace holmes::actors
