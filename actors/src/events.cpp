#include "holmes/actors/events.hpp"

namespace holmes::actors {

std::string to_string(const Incident& incident) {
  std::string text = incident.host.empty() ? "the job failed" : "host " + incident.host + " failed";
  if (!incident.nic.empty()) text += " at NIC " + incident.nic;
  if (!incident.operation.empty()) text += " during " + incident.operation;
  text += incident.any_committed
              ? " (last committed step " + std::to_string(incident.last_committed.value()) + ")"
              : " (no step committed yet)";
  return text + ": " + incident.cause.message();
}

}  // namespace holmes::actors
