@0x8c67f0a1dc2777fc;
# The whole protocol between processes. A frame is a fixed prefix (transport/src/wire/frame.hpp),
# one of the structs below as its header, and raw payload bytes that are never inside a struct.
# Field numbers are never reused; a change that an older program cannot read raises the version in
# transport/src/wire/frame.hpp. Both ends also compare a hash of this file and refuse each other
# when it differs.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("holmes::schema");

# --- Link: hello, refusal, flow control -----------------------------------------------------------

enum Purpose {
  control @0;  # Control messages, credits and goodbyes.
  bulk @1;     # Chunks of payloads.
}

# First frame in both directions on every socket.
struct Hello {
  schemaHash @0 :UInt64;
  job @1 :Text;  # At most 200 bytes.
  host @2 :UInt32;
  nic @3 :UInt32;
  epoch @4 :UInt64;
  purpose @5 :Purpose;
  linkNonce @6 :UInt64;  # The same on all sockets of one link.
  lane @7 :UInt8;        # Of a bulk socket: which one of the link's.
  lanes @8 :UInt8 = 1;   # Bulk sockets of the link; the dialler chooses.
  hostName @9 :Text;     # At most 64 bytes. Of an agent that does not know its number yet.
}

# Instead of a hello: why the peer is refused. Later, on a control socket: why the link ends.
struct Refusal {
  code @0 :UInt8;
  reason @1 :Text;  # At most 1000 bytes.
}

# Header of one control message; the message itself is the payload.
struct Control {
  checksum @0 :UInt64;  # XXH3-64 of the payload.
}

# Names one bulk payload; see transport/message.hpp.
struct Tag {
  generation @0 :UInt64;
  step @1 :UInt64;
  kind @2 :UInt8;
  stage @3 :UInt32;
  microBatch @4 :UInt32;
  layer @5 :UInt32;
  node @6 :UInt32;
  source @7 :UInt32;
  destination @8 :UInt32;
}

# The receiver has reserved a buffer of so many bytes for this tag. Or, where `taken` is not 0: it
# has taken so many payloads that were sent early, of so many bytes together.
struct Credit {
  tag @0 :Tag;
  bytes @1 :UInt64;
  taken @2 :UInt32;
}

# Header of one chunk of a bulk payload.
struct Chunk {
  tag @0 :Tag;
  dtype @1 :UInt8;
  dimensions @2 :List(UInt32);  # At most 8.
  offset @3 :UInt64;            # Of this chunk in the payload.
  total @4 :UInt64;             # Bytes of the payload.
  checksum @5 :UInt64;          # XXH3-64 of this chunk's bytes, if checksummed.
  checksummed @6 :Bool;
}

# --- Messages between actors (payloads of control frames) -----------------------------------------
# Owned by actors/: add structs below this line only.

struct ControlMessage {
  union {
    join @0 :Join;
    welcome @1 :Welcome;
    announce @2 :Announce;
    bareQuiet @3 :UInt64;  # Generation. No longer sent: quiet says what is held.
    prepare @4 :Prepare;
    ready @5 :UInt64;  # Generation.
    go @6 :Announce;
    stepReport @7 :StepReport;
    validationReport @8 :ValidationReport;
    saveReport @9 :SaveReport;
    heartbeat @10 :Heartbeat;
    failureReport @11 :FailureReport;
    stop @12 :Announce;
    vote @13 :Vote;
    commit @14 :Commit;
    quiet @15 :Quiet;
    leaveRequest @16 :Void;
    turnedAway @17 :Text;  # Coordinator to agent: why it cannot take part.
    tryLink @18 :TryLink;
    linkWorks @19 :LinkEnd;
  }
}

# Agent to coordinator: where each NIC of the host listens.
struct Join {
  host @0 :UInt32;
  process @1 :UInt32;
  nics @2 :List(NicAddress);
  build @3 :Text;  # Instruction set and library versions.
}
struct NicAddress {
  host @0 :UInt32;
  nic @1 :UInt32;
  address @2 :Text;
}

# Coordinator to agent: open a link, though no plan needs it, and say if it works.
struct TryLink {
  epoch @0 :UInt64;
  nic @1 :UInt32;
  peer @2 :UInt32;
  address @3 :Text;
}
# Agent to coordinator.
struct LinkEnd {
  nic @0 :UInt32;
  peer @1 :UInt32;
}
struct HostNic {
  host @0 :UInt32;
  nic @1 :UInt32;
}

# Coordinator to agent: the job, every value resolved.
struct Welcome {
  jobToml @0 :Text;
  clusterToml @1 :Text;
  epoch @2 :UInt64;
  dataHash @3 :Text;
  host @4 :UInt32;  # Number of the agent's host in the cluster.
}

struct Announce {
  epoch @0 :UInt64;
  generation @1 :UInt64;
}

# Agent to coordinator: nothing older runs here any more, and this is what its devices hold.
struct Quiet {
  generation @0 :UInt64;
  held @1 :List(HeldState);
  commits @2 :List(CommittedStep);  # Last ones seen, ascending.
}
struct HeldState {
  device @0 :UInt32;
  updates @1 :UInt64;  # That the state has seen.
  reduced @2 :Bool;    # The gradients of the next update are here too.
  pieces @3 :List(Piece);
}
struct Piece {
  layer @0 :UInt32;
  begin @1 :UInt64;  # Elements of the layer.
  end @2 :UInt64;
}
struct CommittedStep {
  step @0 :UInt64;
  gradientNorm @1 :Float64;
  loss @2 :Float64;
  stop @3 :Bool;
}

# State that goes from one device to another before a generation begins.
struct StateTransfer {
  number @0 :UInt32;
  use @1 :UInt8;
  source @2 :UInt32;
  destination @3 :UInt32;
  piece @4 :Piece;
  owner @5 :UInt32;  # Of a kept copy: whose shard it is.
}

struct Prepare {
  epoch @0 :UInt64;
  generation @1 :UInt64;
  firstStep @2 :UInt64;
  plan @3 :Plan;
  addresses @4 :List(NicAddress);
  checkpoint @5 :Text;  # Folder to load from; empty: initial values.
  transfers @6 :List(StateTransfer);  # Where the state comes from instead; those of this host.
  settle @7 :Bool;                    # Apply first what is reduced and not applied, with this norm.
  gradientNorm @8 :Float64;
  save @9 :Bool;  # Begin with a checkpoint.
  stop @10 :Bool; # Train no step.
  nicsDown @11 :List(HostNic);  # Not to be used.
}

struct Plan {
  strategy @0 :UInt8;
  schedule @1 :UInt8;
  batch @2 :UInt32;
  microBatch @3 :UInt32;
  reductionLeaves @4 :UInt32;
  stages @5 :List(StagePlan);
  groups @6 :List(Group);
  edges @7 :List(Edge);
}
struct StagePlan {
  firstBlock @0 :UInt32;
  lastBlock @1 :UInt32;
  shares @2 :List(Share);
}
struct Share {
  device @0 :UInt32;
  firstLeaf @1 :UInt32;
  lastLeaf @2 :UInt32;
  order @3 :Text;      # Of its passes; schedule network-aware only.
  offsetUs @4 :UInt32;  # Before its first forward of a step.
}
struct Group {
  kind @0 :UInt8;
  devices @1 :List(UInt32);
  paths @2 :List(UInt32);  # Fabrics in the order in which they are tried.
  reason @3 :Text;
}
struct Edge {
  fromStage @0 :UInt32;
  toStage @1 :UInt32;
  paths @2 :List(UInt32);
  reason @3 :Text;
}

struct StepReport {
  generation @0 :UInt64;
  step @1 :UInt64;
  loss @2 :Float64;
  gradientNorm @3 :Float64;
  stop @4 :Bool;  # No step follows this one.
}

struct ValidationReport {
  generation @0 :UInt64;
  step @1 :UInt64;
  index @2 :UInt32;
  loss @3 :Float32;
}

struct SaveReport {
  generation @0 :UInt64;
  step @1 :UInt64;
  device @2 :UInt32;
  files @3 :List(SavedFile);
}
struct SavedFile {
  name @0 :Text;
  bytes @1 :UInt64;
  hash @2 :Text;
}

struct Heartbeat {
  nics @0 :List(NicTraffic);
  devices @1 :List(DeviceSpeed);  # That have finished a step since the last one.
}
struct DeviceSpeed {
  device @0 :UInt32;
  slowness @1 :Float64;  # Times longer than modelled.
}
struct NicTraffic {
  nic @0 :UInt32;
  bytesSent @1 :UInt64;
  bytesReceived @2 :UInt64;
}

struct FailureReport {
  generation @0 :UInt64;
  hasPeer @1 :Bool;
  peer @2 :UInt32;
  nic @3 :Text;
  operation @4 :Text;
  code @5 :UInt8;
  message @6 :Text;
}

# Up the vote tree: the shards below are reduced.
struct Vote {
  generation @0 :UInt64;
  step @1 :UInt64;
  to @2 :UInt32;
  squares @3 :List(ChunkSquares);
  losses @4 :List(MicroBatchLoss);
  from @5 :UInt32;
}
struct ChunkSquares {
  layer @0 :UInt32;
  firstChunk @1 :UInt32;
  squares @2 :List(Float64);
}
struct MicroBatchLoss {
  microBatch @0 :UInt32;
  loss @1 :Float32;
}

# Down the vote tree: the step is committed.
struct Commit {
  generation @0 :UInt64;
  step @1 :UInt64;
  to @2 :UInt32;
  gradientNorm @3 :Float64;
  loss @4 :Float64;
  save @5 :Bool;
  stop @6 :Bool;
}
