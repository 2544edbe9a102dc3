#include "holmes/actors/events.hpp"

namespace holmes::actors {

std::string to_string(const Incident& incident) {
  const std::string who = !incident.host.empty() ? "host " + incident.host
                          : incident.goes_on     ? "a link"
                                                 : "the job";
  std::string text = who + (incident.goes_on ? " is lost" : " failed");
  if (!incident.nic.empty()) text += " at NIC " + incident.nic;
  if (!incident.operation.empty()) text += " during " + incident.operation;
  text += incident.any_committed
              ? " (last committed step " + std::to_string(incident.last_committed.value()) + ")"
              : " (no step committed yet)";
  text += ": " + incident.cause.message();
  if (incident.goes_on)
    text += incident.host.empty() ? "; it is opened again" : "; the other hosts go on without it";
  return text;
}

std::string to_string(const Recovered& recovered) {
  const auto ms = [](Duration time) {
    return std::to_string(time / std::chrono::milliseconds(1)) + " ms";
  };
  std::string names;
  for (const auto& host : recovered.hosts) names += (names.empty() ? "" : ", ") + host;
  std::string text = recovered.hosts.empty()       ? "on with all hosts"
                     : recovered.hosts.size() == 1 ? "on without host " + names
                                                   : "on without hosts " + names;
  text += " from step " + std::to_string(recovered.first_step.value()) + " after " +
          ms(recovered.agree + recovered.plan + recovered.move + recovered.first) + " (agree " +
          ms(recovered.agree) + ", plan " + ms(recovered.plan) + ", move state " +
          ms(recovered.move) + ", first step " + ms(recovered.first) + "; last sign of life " +
          ms(recovered.silent) + " before that)";
  if (recovered.steps_lost > 0)
    text += "; " + std::to_string(recovered.steps_lost) +
            " committed steps are done again from the last checkpoint, since nobody left had all "
            "of the state";
  return text;
}

}  // namespace holmes::actors
