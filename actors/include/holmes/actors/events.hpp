#pragma once

// What a session tells its embedder, as values. Events arrive in order, on one thread.

#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "holmes/base/error.hpp"
#include "holmes/base/ids.hpp"
#include "holmes/base/units.hpp"
#include "holmes/partition/plan.hpp"

namespace holmes::actors {

struct HostStarted {
  HostId host;
  std::string name;
  int pid = 0;  ///< Of the host agent's process; 0 in simulation.
};

struct PlanInForce {
  Generation generation;
  Step first_step;  ///< The first step it will run (above 0 after a resume).
  partition::Plan plan;
};

struct NicTraffic {
  HostId host;
  std::string nic;
  std::uint64_t bytes_sent = 0;  ///< Since the start of the process.
  std::uint64_t bytes_received = 0;
};

struct StepFinished {
  Step step;
  double loss = 0;           ///< Mean over the step's tokens, nats per token.
  double gradient_norm = 0;  ///< Before clipping.
  double learning_rate = 0;
  Duration duration{};  ///< Since the step before finished.
  std::uint64_t tokens = 0;
  std::vector<NicTraffic> traffic;  ///< Latest counters known.
};

struct ValidationFinished {
  Step step;  ///< Updates made before it.
  double loss = 0;
};

struct CheckpointSaved {
  Step step;  ///< Updates that it holds.
  std::filesystem::path folder;
};

/// The one record that every failure message is made from.
struct Incident {
  std::string host;       ///< Who is at fault, by name; empty if nobody is known to be.
  std::string nic;        ///< Where known; "a0/ib0" where no host is at fault.
  std::string operation;  ///< What was going on, for example "reduce of step 12".
  Step last_committed;
  bool any_committed = false;
  Error cause{ErrorCode::kInternal, ""};
  bool goes_on = false;     ///< The job goes on without the host or the NIC: Regrouped follows.
  bool other_nics = false;  ///< Of goes_on: other NICs do its work.
};
/// "host b0 lost during reduce of step 12 (last committed step 11): connection closed by peer".
std::string to_string(const Incident& incident);

/// The first step after a change of members is committed: hosts were lost, came, or left as they
/// were asked to. Durations are the coordinator's; what changes before that step is one change.
struct Regrouped {
  std::vector<std::string> lost;  ///< Hosts by name.
  std::vector<std::string> left;
  std::vector<std::string> joined;
  std::vector<std::string> nics_lost = {};  ///< "a0/ib0": not used from now on.
  std::vector<std::string> nics_back = {};  ///< Used again.
  std::string adapted = {};  ///< Why another plan was taken, where nobody came or went.
  Generation generation;     ///< That the job goes on in.
  Step first_step;
  std::uint64_t steps_lost = 0;  ///< Committed steps that are done again; none unless the state was
                                 ///< gone and a checkpoint was loaded.
  Duration silent{};             ///< From the last sign of life of the first host that was lost to
                                 ///< the notice: detection took less.
  Duration agree{};              ///< Until every member that is left was quiet.
  Duration plan{};
  Duration move{};        ///< Until every member had its state, memory and links.
  Duration first{};       ///< Until the first step was committed.
  std::size_t moved = 0;  ///< Bytes of state that went from host to host.
};
/// "on without host b0 from step 12 after 210 ms (agree 3 ms, ...)".
std::string to_string(const Regrouped& regrouped);

using Event = std::variant<HostStarted, PlanInForce, StepFinished, ValidationFinished,
                           CheckpointSaved, Incident, Regrouped>;

}  // namespace holmes::actors
