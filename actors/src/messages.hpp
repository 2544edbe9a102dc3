#pragma once

// Messages between the actors of one process. They carry handles to buffers, never the bytes, and
// never leave the process: what crosses hosts is encoded by codec.hpp. Every message of training
// names its generation; receivers drop those of older ones.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>

#include "holmes/base/buffer.hpp"
#include "holmes/base/ids.hpp"
#include "holmes/base/result.hpp"
#include "holmes/transport/message.hpp"
#include "state.hpp"

namespace holmes::actors {

// --- Stage and Replica of one device (lending memory) ---

/// Replica to Stage: the values of one bucket (the layer in `slot`) that step `step` computes with.
struct ParametersReady {
  Generation generation;
  Step step;
  std::uint32_t slot = 0;
  Buffer values;
};

/// Replica to Stage: where the weight gradients of one leaf and bucket are to be added up. The
/// memory is not yet zero: the leaf's first micro-batch clears it.
struct AccumulatorLent {
  Generation generation;
  Step step;
  std::uint32_t slot = 0;
  std::uint32_t leaf = 0;
  Buffer gradients;
};

/// Stage to Replica: all micro-batches of the leaf have been added; the memory comes back.
struct GradientReady {
  Generation generation;
  Step step;
  std::uint32_t slot = 0;
  std::uint32_t leaf = 0;
  Buffer gradients;
};

/// Stage with the head to its Replica: mean loss of one micro-batch.
struct LossReady {
  Generation generation;
  Step step;
  MicroBatch micro_batch;
  float loss = 0;
};

/// Stage with the head to its HostAgent: mean loss of one validation micro-batch.
struct ValidationLossReady {
  Generation generation;
  Step step;
  std::uint32_t index = 0;
  float loss = 0;
};

// --- Tensors ---

/// A payload is here: from a Nic, or straight from an actor of this process, uncopied.
struct TensorArrived {
  transport::BulkTag tag;
  BufferView payload;
};

/// To a Nic: send this payload to the host of its destination. `sender`, if any, gets TensorTaken.
struct SendTensor {
  HostId to;
  transport::BulkTag tag;
  transport::TensorShape shape;
  BufferView payload;
  caf::actor sender;
};

/// To the Stage that sent it: the payload is on its way into a buffer of the receiver's, or the
/// receiver in this process has begun with it.
struct TensorTaken {
  transport::BulkTag tag;
};

/// To a Nic: the payload `tag` may come into `buffer`; it goes to `receiver` as TensorArrived.
struct ReserveTensor {
  HostId from;
  transport::BulkTag tag;
  transport::TensorShape shape;
  Buffer buffer;
  caf::actor receiver;
};

// --- Commit ---

/// Squared norms of consecutive chunks of one layer.
struct ChunkSquares {
  std::uint32_t layer = 0;  ///< Number in the whole model.
  std::uint32_t first_chunk = 0;
  std::vector<double> squares;
};
struct MicroBatchLoss {
  MicroBatch micro_batch;
  float loss = 0;
};

/// Up the vote tree: the members below have their shards' gradients reduced (and their buddies hold
/// them).
struct Vote {
  Generation generation;
  Step step;
  DeviceId from;
  DeviceId to;
  std::vector<ChunkSquares> squares;
  std::vector<MicroBatchLoss> losses;
};

/// Down the vote tree: the step is committed.
struct Commit {
  Generation generation;
  Step step;
  DeviceId to;
  double gradient_norm = 0;
  double loss = 0;
  bool save = false;  ///< Take a checkpoint of the state after this step.
  bool stop = false;  ///< Do not begin another step.
};

// --- Replica to HostAgent ---

/// The root's report of a committed step.
struct StepCommitted {
  Generation generation;
  Step step;
  double gradient_norm = 0;
  double loss = 0;
  bool stop = false;  ///< No step follows this one.
};
struct SavedFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::string hash;
};
/// This member's files of the checkpoint that holds `step` updates are on disk.
struct ShardSaved {
  Generation generation;
  Step step;
  DeviceId device;
  std::vector<SavedFile> files;
};
/// The actor is ready to train in this generation (parameters initialised or loaded).
struct MemberReady {
  Generation generation;
  DeviceId device;
};
/// Something failed that this actor cannot mend.
struct MemberFailed {
  Generation generation;
  DeviceId device;
  std::string operation;
  Error error{ErrorCode::kInternal, ""};
};

// --- HostAgent to its actors ---

class Routes;
/// Train: the generation is in force and every member can be reached.
struct Go {
  Generation generation;
  std::shared_ptr<const Routes> routes;
};
/// Stop work of generations below this one, let the running operator end, and answer with Quiet.
struct Supersede {
  Generation generation;
  caf::actor reply_to;
};
struct Quiet {
  Generation generation;
  DeviceId device = {};                     ///< Of a Replica.
  std::shared_ptr<MemberState> state = {};  ///< Of a Replica that was ready; else empty.
};
/// To the vote's root: commit the running step with `stop` and `save` set.
struct StopRequested {
  Generation generation;
};

/// To a HostAgent, from its process: this host is to leave the job.
struct LeaveAsked {};

/// From a Stage to its HostAgent, after each step: its passes took so many times longer than the
/// device's declared speed says, at the median.
struct StepTimed {
  DeviceId device;
  double slowness = 1;
};

// --- Nic and HostAgent ---

struct OpenLink {
  HostId peer;
  std::string address;
};
struct LinkUp {
  NicId nic;
  HostId peer;
};
struct LinkLost {
  NicId nic;
  HostId peer;
  Error error{ErrorCode::kInternal, ""};
};
/// To a Nic: close the links to hosts that are not among these; they are no members any more. An
/// agent that comes back to one of them opens links of its own.
struct KeepLinks {
  std::vector<HostId> peers;
};
/// To a Nic: an encoded message for the agent of another host.
struct SendControl {
  HostId to;
  BufferView message;
};
/// From a Nic to its HostAgent.
struct ControlArrived {
  HostId from;
  Buffer message;
};
struct TrafficCounted {
  NicId nic;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
};

}  // namespace holmes::actors

// Handles to buffers must not be serialised: these types stay inside the process.
#define HOLMES_LOCAL_MESSAGE(type) CAF_ALLOW_UNSAFE_MESSAGE_TYPE(holmes::actors::type)
HOLMES_LOCAL_MESSAGE(ParametersReady)
HOLMES_LOCAL_MESSAGE(AccumulatorLent)
HOLMES_LOCAL_MESSAGE(GradientReady)
HOLMES_LOCAL_MESSAGE(LossReady)
HOLMES_LOCAL_MESSAGE(ValidationLossReady)
HOLMES_LOCAL_MESSAGE(TensorArrived)
HOLMES_LOCAL_MESSAGE(SendTensor)
HOLMES_LOCAL_MESSAGE(TensorTaken)
HOLMES_LOCAL_MESSAGE(ReserveTensor)
HOLMES_LOCAL_MESSAGE(Vote)
HOLMES_LOCAL_MESSAGE(Commit)
HOLMES_LOCAL_MESSAGE(StepTimed)
HOLMES_LOCAL_MESSAGE(StepCommitted)
HOLMES_LOCAL_MESSAGE(ShardSaved)
HOLMES_LOCAL_MESSAGE(MemberReady)
HOLMES_LOCAL_MESSAGE(MemberFailed)
HOLMES_LOCAL_MESSAGE(Go)
HOLMES_LOCAL_MESSAGE(Supersede)
HOLMES_LOCAL_MESSAGE(Quiet)
HOLMES_LOCAL_MESSAGE(StopRequested)
HOLMES_LOCAL_MESSAGE(LeaveAsked)
HOLMES_LOCAL_MESSAGE(OpenLink)
HOLMES_LOCAL_MESSAGE(KeepLinks)
HOLMES_LOCAL_MESSAGE(LinkUp)
HOLMES_LOCAL_MESSAGE(LinkLost)
HOLMES_LOCAL_MESSAGE(SendControl)
HOLMES_LOCAL_MESSAGE(ControlArrived)
HOLMES_LOCAL_MESSAGE(TrafficCounted)
#undef HOLMES_LOCAL_MESSAGE
