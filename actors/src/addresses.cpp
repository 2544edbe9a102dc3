#include "addresses.hpp"

#include <algorithm>

namespace holmes::actors {
namespace {

bool is_called(const transport::FoundNic& found, const std::string& name) {
  return found.name == name || found.device == name || found.interface == name ||
         std::find(found.members.begin(), found.members.end(), name) != found.members.end();
}

/// IPv4 first: an IPv6 address may be one that changes.
std::string best_address(const transport::FoundNic& found) {
  const auto& addresses = found.addresses;
  const auto at = std::find_if(addresses.begin(), addresses.end(), [](const auto& each) {
    return each.address.find(':') == std::string::npos;
  });
  if (at != addresses.end()) return at->address;
  return addresses.empty() ? "" : addresses.front().address;
}

std::string names_of(const transport::FoundNics& machine) {
  std::string names;
  for (const auto& found : machine.nics)
    if (!found.addresses.empty())
      names += (names.empty() ? "" : ", ") + found.name + " (" + best_address(found) + ")";
  return names.empty() ? "none with an address" : names;
}

}  // namespace

Result<std::string> interface_address(const partition::Host& host, const partition::Nic& nic,
                                      const MachineNics& machine) {
  if (!nic.address.empty()) return nic.address;
  HOLMES_TRY_ASSIGN(const auto found, machine());
  for (const auto& each : found.nics)
    if (is_called(each, nic.name))
      if (auto address = best_address(each); !address.empty()) return address;
  // Several NICs on one address would all be the same one, whatever the plan thinks.
  if (!host.address.empty() && host.nics.size() == 1) return host.address;
  return Error(ErrorCode::kNotFound,
               "NIC " + nic.name + " of host " + host.name +
                   " has no address: the cluster file gives none, and this machine has no "
                   "interface of that name with one; it has " +
                   names_of(found) + ". Set the NIC's address in the cluster file");
}

}  // namespace holmes::actors
