#include "holmes/actors/health.hpp"

namespace holmes::actors {

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFinished:
      return "finished";
    case Outcome::kInterrupted:
      return "interrupted";
    case Outcome::kFailed:
      break;
  }
  return "failed";
}

std::string_view to_string(SessionPhase phase) {
  switch (phase) {
    case SessionPhase::kStarting:
      return "starting";
    case SessionPhase::kTraining:
      return "training";
    case SessionPhase::kRegrouping:
      return "regrouping";
    case SessionPhase::kEnding:
      return "ending";
    case SessionPhase::kOver:
      break;
  }
  return "over";
}

}  // namespace holmes::actors
