#include "holmes/actors/events.hpp"

namespace holmes::actors {

std::string to_string(const Incident& incident) {
  const bool several = incident.other_nics && incident.nic.find(',') != std::string::npos;
  const std::string who = !incident.host.empty() ? "host " + incident.host
                          : several              ? "NICs " + incident.nic
                          : incident.other_nics  ? "NIC " + incident.nic
                          : incident.goes_on     ? "a link"
                                                 : "the job";
  std::string text = who + (several ? " are lost" : incident.goes_on ? " is lost" : " failed");
  if (!incident.nic.empty() && !incident.other_nics) text += " at NIC " + incident.nic;
  if (!incident.operation.empty()) text += " during " + incident.operation;
  text += incident.any_committed
              ? " (last committed step " + std::to_string(incident.last_committed.value()) + ")"
              : " (no step committed yet)";
  text += ": " + incident.cause.message();
  if (incident.other_nics)
    text += "; other NICs take its place";
  else if (incident.goes_on)
    text += incident.host.empty() ? "; it is opened again" : "; the other hosts go on without it";
  return text;
}

std::string to_string(const Regrouped& regrouped) {
  const auto ms = [](Duration time) {
    return std::to_string(time / std::chrono::milliseconds(1)) + " ms";
  };
  std::string text;
  const auto name = [&text](const char* how, const char* what,
                            const std::vector<std::string>& names, const char* why) {
    for (std::size_t i = 0; i < names.size(); ++i)
      text += i > 0 ? ", " + names[i]
                    : (text.empty() ? "" : ", ") + std::string(how) + " " + what +
                          (names.size() == 1 ? " " : "s ") + names[i];
    if (!names.empty()) text += why;
  };
  name("with", "host", regrouped.joined, "");
  name("with", "NIC", regrouped.nics_back, "");
  name("without", "host", regrouped.lost, "");
  name("without", "host", regrouped.left, ", which left");
  name("without", "NIC", regrouped.nics_lost, "");
  if (!regrouped.adapted.empty())
    text += (text.empty() ? "" : ", ") + ("by another plan: " + regrouped.adapted + ";");
  text = "on " + (text.empty() ? "with all hosts" : text) + " from step " +
         std::to_string(regrouped.first_step.value()) + " after " +
         ms(regrouped.agree + regrouped.plan + regrouped.move + regrouped.first) + " (agree " +
         ms(regrouped.agree) + ", plan " + ms(regrouped.plan) + ", move state " +
         ms(regrouped.move) + ", first step " + ms(regrouped.first);
  if (!regrouped.lost.empty())
    text += "; last sign of life " + ms(regrouped.silent) + " before that";
  text += ")";
  if (regrouped.steps_lost > 0)
    text += "; " + std::to_string(regrouped.steps_lost) +
            " committed steps are done again from the last checkpoint, since nobody left had all "
            "of the state";
  return text;
}

}  // namespace holmes::actors
