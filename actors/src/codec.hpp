#pragma once

// Between values of this folder and the bytes of transport/wire/holmes.capnp: the only place of
// actors/ that knows the schema. Decoding trusts nothing: sizes, enumerators and indices are
// checked, and a plan is validated by its receiver.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "holmes/base/buffer.hpp"
#include "holmes/base/result.hpp"
#include "holmes/partition/plan.hpp"
#include "messages.hpp"

namespace holmes::actors {

/// Where one NIC of a host listens.
struct NicAddress {
  HostId host;
  NicId nic;
  std::string address;
  friend bool operator==(const NicAddress&, const NicAddress&) = default;
};

/// A NIC of the cluster.
struct HostNic {
  HostId host;
  NicId nic;
  friend auto operator<=>(const HostNic&, const HostNic&) = default;
};

/// Agent to coordinator, once, after connecting.
struct Join {
  HostId host;
  std::uint32_t process = 0;
  std::vector<NicAddress> nics;
  std::string build;  ///< Instruction set and library versions: the same bits need the same ones.
};
/// Coordinator to agent: the job, as the text of its files with every value resolved.
struct Welcome {
  Epoch epoch;
  std::string job_toml;
  std::string cluster_toml;
  std::string data_hash;
  HostId host;  ///< Number of the agent's host in the cluster.
};
/// Coordinator to agent: why it cannot take part.
struct TurnedAway {
  std::string reason;
};
/// Coordinator to agents: a new generation begins; stop the old one.
struct Announce {
  Epoch epoch;
  Generation generation;
};
/// Agent to coordinator: nothing of an older generation runs here any more, and this is what the
/// devices hold.
struct AgentQuiet {
  Generation generation;
  std::vector<HeldState> held;
  std::vector<CommittedStep> commits;  ///< Last ones seen, ascending.
};
/// Coordinator to agents: get ready for this plan. An empty plan: the job ends.
struct Prepare {
  Epoch epoch;
  Generation generation;
  Step first_step;
  partition::Plan plan;
  std::vector<NicAddress> addresses;
  std::string checkpoint;  ///< Folder to load the state from; empty: initial values.
  /// From whom the state comes instead: those that begin or end at this host. Empty: from nobody.
  std::vector<StateTransfer> transfers = {};
  std::optional<double> settle_norm = {};  ///< Of the last commit: apply it where it is missing.
  bool save = false;                       ///< Begin with a checkpoint.
  bool stop = false;                       ///< Train no step.
  std::vector<HostNic> nics_down = {};     ///< Not to be used.
};
struct AgentReady {
  Generation generation;
};
/// Coordinator to agents: train.
struct AgentGo {
  Epoch epoch;
  Generation generation;
};
/// Agent of the vote's root to coordinator.
struct StepReport {
  Generation generation;
  Step step;
  double loss = 0;
  double gradient_norm = 0;
  bool stop = false;  ///< No step follows this one.
};
struct ValidationReport {
  Generation generation;
  Step step;
  std::uint32_t index = 0;
  float loss = 0;
};
struct SaveReport {
  Generation generation;
  Step step;
  DeviceId device;
  std::vector<SavedFile> files;
};
/// Both ways, regularly: alive. From an agent: and what its NICs have carried.
struct Heartbeat {
  struct Nic {
    NicId nic;
    std::uint64_t bytes_sent = 0;
    std::uint64_t bytes_received = 0;
  };
  struct Device {
    DeviceId device;
    double slowness = 1;  ///< Passes took so many times longer than declared.
  };
  std::vector<Nic> nics;
  std::vector<Device> devices = {};  ///< That have finished a step since the last one.
};
/// Agent to coordinator: something failed here, or a peer was lost.
struct FailureReport {
  Generation generation;
  bool has_peer = false;
  HostId peer;  ///< Host at the other end of a lost link.
  std::string nic;
  std::string operation;
  Error error{ErrorCode::kInternal, ""};
};
/// Coordinator to the agent of the vote's root: stop after the running step, with a checkpoint.
struct AgentStop {
  Epoch epoch;
  Generation generation;
};

/// Coordinator to agent: open a link, though no plan needs it, and say if it works.
struct TryLink {
  Epoch epoch;
  NicId nic;
  HostId peer;
  std::string address;
};
/// Agent to coordinator: the link that was to be tried is there.
struct LinkWorks {
  NicId nic;
  HostId peer;
};

/// Agent to coordinator: this host is to leave the job; until it is let go it takes part.
struct LeaveRequest {};

using ControlMessage =
    std::variant<Join, Welcome, Announce, AgentQuiet, Prepare, AgentReady, AgentGo, StepReport,
                 ValidationReport, SaveReport, Heartbeat, FailureReport, AgentStop, Vote, Commit,
                 LeaveRequest, TurnedAway, TryLink, LinkWorks>;

Buffer encode(const ControlMessage& message);
/// kCorrupt when the bytes are no control message of this protocol.
Result<ControlMessage> decode(const Buffer& bytes);

}  // namespace holmes::actors
