#pragma once

// Which address a NIC of the cluster file has on the machine that this runs on.

#include <functional>
#include <string>

#include "holmes/actors/job_config.hpp"
#include "holmes/transport/nics.hpp"

namespace holmes::actors {

/// What find_nics() gives, asked for only where a NIC has no address of its own.
using MachineNics = std::function<Result<transport::FoundNics>()>;

/// The address that NIC `nic` of `host` listens at and dials from, as digits. In this order: the
/// NIC's own of the cluster file; that of the interface or RDMA device of its name; the host's of
/// the cluster file, if this is its only NIC. kNotFound names the host, the NIC, and what the
/// machine has instead.
Result<std::string> interface_address(const partition::Host& host, const partition::Nic& nic,
                                      const MachineNics& machine);

}  // namespace holmes::actors
