#pragma once

// How a session is doing, as a value: for status pages, probes and metrics. What happened one by
// one is in events.hpp.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holmes/base/units.hpp"

namespace holmes::actors {

enum class Outcome : std::uint8_t {
  kFinished,     ///< All steps done, checkpoint saved.
  kInterrupted,  ///< Stopped on request, checkpoint saved.
  kFailed,
};
/// "finished", "interrupted", "failed".
std::string_view to_string(Outcome outcome);

enum class SessionPhase : std::uint8_t {
  kStarting,    ///< No plan is in force yet: hosts are joining, or prepare.
  kTraining,    ///< A plan is in force.
  kRegrouping,  ///< A host was lost; the others agree on how to go on.
  kEnding,      ///< It was asked to stop, or has failed; what can be saved is saved.
  kOver,        ///< Health::outcome says how it ended.
};
/// "starting", "training", "regrouping", "ending", "over".
std::string_view to_string(SessionPhase phase);

struct Health {
  SessionPhase phase = SessionPhase::kStarting;
  std::optional<Outcome> outcome = {};  ///< Once it is over.
  std::uint64_t steps_done = 0;         ///< Committed, those before a resume included.
  std::uint64_t steps_total = 0;
  std::optional<double> loss = {};             ///< Of the last step, nats per token.
  std::optional<Duration> last_step_age = {};  ///< Since this session last committed a step.
  std::vector<std::string> members = {};       ///< Hosts that train now, by name.
  std::filesystem::path checkpoint = {};       ///< The newest of this session; empty: none yet.
  std::string incident = {};                   ///< The last one as text; empty: there was none.
};

}  // namespace holmes::actors
