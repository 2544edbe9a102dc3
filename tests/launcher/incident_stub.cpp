// Stands for the actors' own until they land; weak, so that theirs wins.
#include "holmes/actors/events.hpp"

namespace holmes::actors {

[[gnu::weak]] std::string to_string(const Incident& incident) {
  return "host " + incident.host + " lost during " + incident.operation + ": " +
         incident.cause.message();
}

}  // namespace holmes::actors
