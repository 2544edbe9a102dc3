#include "codec.hpp"

#include <capnp/message.h>
#include <capnp/serialize.h>

#include "holmes/base/limits.hpp"
#include "holmes/wire/holmes.capnp.h"
#include "plan_codec.hpp"

namespace holmes::actors {

namespace {

constexpr std::size_t kWordBytes = sizeof(capnp::word);
using Builder = schema::ControlMessage::Builder;

unsigned count(std::size_t size) {
  return static_cast<unsigned>(size);
}

template <class Addresses, class ListBuilder>
void write_addresses(const Addresses& addresses, ListBuilder out) {
  for (unsigned i = 0; i < addresses.size(); ++i) {
    out[i].setHost(addresses[i].host.value());
    out[i].setNic(addresses[i].nic.value());
    out[i].setAddress(addresses[i].address);
  }
}

std::vector<NicAddress> read_addresses(capnp::List<schema::NicAddress>::Reader in) {
  std::vector<NicAddress> addresses;
  for (const auto item : in)
    addresses.push_back({HostId(item.getHost()), NicId(item.getNic()), item.getAddress().cStr()});
  return addresses;
}

// --- encoding: one overload for each message ---

void write(const Join& join, Builder out) {
  auto to = out.initJoin();
  to.setHost(join.host.value());
  to.setProcess(join.process);
  write_addresses(join.nics, to.initNics(count(join.nics.size())));
  to.setBuild(join.build);
}

void write(const Welcome& welcome, Builder out) {
  auto to = out.initWelcome();
  to.setEpoch(welcome.epoch.value());
  to.setJobToml(welcome.job_toml);
  to.setClusterToml(welcome.cluster_toml);
  to.setDataHash(welcome.data_hash);
  to.setHost(welcome.host.value());
}

void write(const Announce& announce, Builder out) {
  auto to = out.initAnnounce();
  to.setEpoch(announce.epoch.value());
  to.setGeneration(announce.generation.value());
}

void write_piece(const PieceName& piece, schema::Piece::Builder out) {
  out.setLayer(piece.layer);
  out.setBegin(piece.elements.begin);
  out.setEnd(piece.elements.end);
}

void write(const AgentQuiet& quiet, Builder out) {
  auto to = out.initQuiet();
  to.setGeneration(quiet.generation.value());
  auto held = to.initHeld(count(quiet.held.size()));
  for (unsigned i = 0; i < quiet.held.size(); ++i) {
    const auto& state = quiet.held[i];
    held[i].setDevice(state.device.value());
    held[i].setUpdates(state.updates.value());
    held[i].setReduced(state.reduced);
    auto pieces = held[i].initPieces(count(state.pieces.size()));
    for (unsigned j = 0; j < state.pieces.size(); ++j) write_piece(state.pieces[j], pieces[j]);
  }
  auto commits = to.initCommits(count(quiet.commits.size()));
  for (unsigned i = 0; i < quiet.commits.size(); ++i) {
    commits[i].setStep(quiet.commits[i].step.value());
    commits[i].setGradientNorm(quiet.commits[i].gradient_norm);
    commits[i].setLoss(quiet.commits[i].loss);
    commits[i].setStop(quiet.commits[i].stop);
  }
}

void write_transfer(const StateTransfer& transfer, schema::StateTransfer::Builder out) {
  out.setNumber(transfer.number);
  out.setUse(static_cast<std::uint8_t>(transfer.use));
  out.setSource(transfer.source.value());
  out.setDestination(transfer.destination.value());
  write_piece(transfer.piece, out.initPiece());
  out.setOwner(transfer.owner.value());
}

void write(const Prepare& prepare, Builder out) {
  auto to = out.initPrepare();
  to.setEpoch(prepare.epoch.value());
  to.setGeneration(prepare.generation.value());
  to.setFirstStep(prepare.first_step.value());
  write_plan(prepare.plan, to.initPlan());
  write_addresses(prepare.addresses, to.initAddresses(count(prepare.addresses.size())));
  to.setCheckpoint(prepare.checkpoint);
  auto transfers = to.initTransfers(count(prepare.transfers.size()));
  for (unsigned i = 0; i < prepare.transfers.size(); ++i)
    write_transfer(prepare.transfers[i], transfers[i]);
  to.setSettle(prepare.settle_norm.has_value());
  to.setGradientNorm(prepare.settle_norm.value_or(0));
  to.setSave(prepare.save);
  to.setStop(prepare.stop);
  auto down = to.initNicsDown(count(prepare.nics_down.size()));
  for (unsigned i = 0; i < prepare.nics_down.size(); ++i) {
    down[i].setHost(prepare.nics_down[i].host.value());
    down[i].setNic(prepare.nics_down[i].nic.value());
  }
}

void write(const AgentReady& ready, Builder out) {
  out.setReady(ready.generation.value());
}

void write(const AgentGo& go, Builder out) {
  auto to = out.initGo();
  to.setEpoch(go.epoch.value());
  to.setGeneration(go.generation.value());
}

void write(const StepReport& report, Builder out) {
  auto to = out.initStepReport();
  to.setGeneration(report.generation.value());
  to.setStep(report.step.value());
  to.setLoss(report.loss);
  to.setGradientNorm(report.gradient_norm);
  to.setStop(report.stop);
}

void write(const ValidationReport& report, Builder out) {
  auto to = out.initValidationReport();
  to.setGeneration(report.generation.value());
  to.setStep(report.step.value());
  to.setIndex(report.index);
  to.setLoss(report.loss);
}

void write(const SaveReport& report, Builder out) {
  auto to = out.initSaveReport();
  to.setGeneration(report.generation.value());
  to.setStep(report.step.value());
  to.setDevice(report.device.value());
  auto files = to.initFiles(count(report.files.size()));
  for (unsigned i = 0; i < report.files.size(); ++i) {
    files[i].setName(report.files[i].name);
    files[i].setBytes(report.files[i].bytes);
    files[i].setHash(report.files[i].hash);
  }
}

void write(const Heartbeat& heartbeat, Builder out) {
  auto to = out.initHeartbeat();
  auto nics = to.initNics(count(heartbeat.nics.size()));
  for (unsigned i = 0; i < heartbeat.nics.size(); ++i) {
    nics[i].setNic(heartbeat.nics[i].nic.value());
    nics[i].setBytesSent(heartbeat.nics[i].bytes_sent);
    nics[i].setBytesReceived(heartbeat.nics[i].bytes_received);
  }
  auto devices = to.initDevices(count(heartbeat.devices.size()));
  for (unsigned i = 0; i < heartbeat.devices.size(); ++i) {
    devices[i].setDevice(heartbeat.devices[i].device.value());
    devices[i].setSlowness(heartbeat.devices[i].slowness);
  }
}

void write(const FailureReport& report, Builder out) {
  auto to = out.initFailureReport();
  to.setGeneration(report.generation.value());
  to.setHasPeer(report.has_peer);
  to.setPeer(report.peer.value());
  to.setNic(report.nic);
  to.setOperation(report.operation);
  to.setCode(static_cast<std::uint8_t>(report.error.code()));
  to.setMessage(report.error.message());
}

void write(const AgentStop& stop, Builder out) {
  auto to = out.initStop();
  to.setEpoch(stop.epoch.value());
  to.setGeneration(stop.generation.value());
}

void write(const LeaveRequest&, Builder out) {
  out.setLeaveRequest();
}

void write(const TryLink& link, Builder out) {
  auto to = out.initTryLink();
  to.setEpoch(link.epoch.value());
  to.setNic(link.nic.value());
  to.setPeer(link.peer.value());
  to.setAddress(link.address);
}

void write(const LinkWorks& link, Builder out) {
  auto to = out.initLinkWorks();
  to.setNic(link.nic.value());
  to.setPeer(link.peer.value());
}

void write(const TurnedAway& turned_away, Builder out) {
  out.setTurnedAway(turned_away.reason);
}

void write(const Vote& vote, Builder out) {
  auto to = out.initVote();
  to.setGeneration(vote.generation.value());
  to.setStep(vote.step.value());
  to.setFrom(vote.from.value());
  to.setTo(vote.to.value());
  auto squares = to.initSquares(count(vote.squares.size()));
  for (unsigned i = 0; i < vote.squares.size(); ++i) {
    const auto& run = vote.squares[i];
    squares[i].setLayer(run.layer);
    squares[i].setFirstChunk(run.first_chunk);
    auto values = squares[i].initSquares(count(run.squares.size()));
    for (unsigned j = 0; j < run.squares.size(); ++j) values.set(j, run.squares[j]);
  }
  auto losses = to.initLosses(count(vote.losses.size()));
  for (unsigned i = 0; i < vote.losses.size(); ++i) {
    losses[i].setMicroBatch(vote.losses[i].micro_batch.value());
    losses[i].setLoss(vote.losses[i].loss);
  }
}

void write(const Commit& commit, Builder out) {
  auto to = out.initCommit();
  to.setGeneration(commit.generation.value());
  to.setStep(commit.step.value());
  to.setTo(commit.to.value());
  to.setGradientNorm(commit.gradient_norm);
  to.setLoss(commit.loss);
  to.setSave(commit.save);
  to.setStop(commit.stop);
}

// --- decoding ---

Vote read_vote(schema::Vote::Reader in) {
  Vote vote{Generation(in.getGeneration()),
            Step(in.getStep()),
            DeviceId(in.getFrom()),
            DeviceId(in.getTo()),
            {},
            {}};
  for (const auto run : in.getSquares()) {
    ChunkSquares squares{run.getLayer(), run.getFirstChunk(), {}};
    for (const double value : run.getSquares()) squares.squares.push_back(value);
    vote.squares.push_back(std::move(squares));
  }
  for (const auto item : in.getLosses())
    vote.losses.push_back({MicroBatch(item.getMicroBatch()), item.getLoss()});
  return vote;
}

Commit read_commit(schema::Commit::Reader in) {
  return {Generation(in.getGeneration()),
          Step(in.getStep()),
          DeviceId(in.getTo()),
          in.getGradientNorm(),
          in.getLoss(),
          in.getSave(),
          in.getStop()};
}

PieceName read_piece(schema::Piece::Reader in) {
  return {in.getLayer(), {in.getBegin(), in.getEnd()}};
}

AgentQuiet read_quiet(schema::Quiet::Reader in) {
  AgentQuiet quiet{Generation(in.getGeneration()), {}, {}};
  for (const auto item : in.getHeld()) {
    HeldState state{DeviceId(item.getDevice()), Step(item.getUpdates()), item.getReduced(), {}};
    for (const auto piece : item.getPieces()) state.pieces.push_back(read_piece(piece));
    quiet.held.push_back(std::move(state));
  }
  for (const auto item : in.getCommits())
    quiet.commits.push_back(
        {Step(item.getStep()), item.getGradientNorm(), item.getLoss(), item.getStop()});
  return quiet;
}

Result<ControlMessage> read_prepare(schema::Prepare::Reader in) {
  Prepare prepare{Epoch(in.getEpoch()),
                  Generation(in.getGeneration()),
                  Step(in.getFirstStep()),
                  {},
                  read_addresses(in.getAddresses()),
                  in.getCheckpoint().cStr()};
  HOLMES_TRY_ASSIGN(prepare.plan, read_plan(in.getPlan()));
  for (const auto item : in.getTransfers()) {
    if (item.getUse() > static_cast<std::uint8_t>(kStateUseLast))
      return Error(ErrorCode::kCorrupt, "prepare: unknown use of a transfer");
    prepare.transfers.push_back({item.getNumber(), static_cast<StateUse>(item.getUse()),
                                 DeviceId(item.getSource()), DeviceId(item.getDestination()),
                                 read_piece(item.getPiece()), DeviceId(item.getOwner())});
  }
  if (in.getSettle()) prepare.settle_norm = in.getGradientNorm();
  prepare.save = in.getSave();
  prepare.stop = in.getStop();
  for (const auto nic : in.getNicsDown())
    prepare.nics_down.push_back({HostId(nic.getHost()), NicId(nic.getNic())});
  return ControlMessage(std::move(prepare));
}

SaveReport read_save(schema::SaveReport::Reader in) {
  SaveReport report{
      Generation(in.getGeneration()), Step(in.getStep()), DeviceId(in.getDevice()), {}};
  for (const auto file : in.getFiles())
    report.files.push_back({file.getName().cStr(), file.getBytes(), file.getHash().cStr()});
  return report;
}

Heartbeat read_heartbeat(schema::Heartbeat::Reader in) {
  Heartbeat heartbeat;
  for (const auto nic : in.getNics())
    heartbeat.nics.push_back({NicId(nic.getNic()), nic.getBytesSent(), nic.getBytesReceived()});
  for (const auto device : in.getDevices())
    heartbeat.devices.push_back({DeviceId(device.getDevice()), device.getSlowness()});
  return heartbeat;
}

Result<ControlMessage> read_failure(schema::FailureReport::Reader in) {
  if (in.getCode() > static_cast<std::uint8_t>(ErrorCode::kInternal))
    return Error(ErrorCode::kCorrupt, "failure report: unknown error code");
  return ControlMessage(
      FailureReport{Generation(in.getGeneration()), in.getHasPeer(), HostId(in.getPeer()),
                    in.getNic().cStr(), in.getOperation().cStr(),
                    Error(static_cast<ErrorCode>(in.getCode()), in.getMessage().cStr())});
}

Result<ControlMessage> read(schema::ControlMessage::Reader in) {
  using Which = schema::ControlMessage::Which;
  switch (in.which()) {
    case Which::JOIN: {
      const auto join = in.getJoin();
      return ControlMessage(Join{HostId(join.getHost()), join.getProcess(),
                                 read_addresses(join.getNics()), join.getBuild().cStr()});
    }
    case Which::WELCOME:
      return ControlMessage(
          Welcome{Epoch(in.getWelcome().getEpoch()), in.getWelcome().getJobToml().cStr(),
                  in.getWelcome().getClusterToml().cStr(), in.getWelcome().getDataHash().cStr(),
                  HostId(in.getWelcome().getHost())});
    case Which::ANNOUNCE:
      return ControlMessage(Announce{Epoch(in.getAnnounce().getEpoch()),
                                     Generation(in.getAnnounce().getGeneration())});
    case Which::BARE_QUIET:
      break;
    case Which::QUIET:
      return ControlMessage(read_quiet(in.getQuiet()));
    case Which::PREPARE:
      return read_prepare(in.getPrepare());
    case Which::READY:
      return ControlMessage(AgentReady{Generation(in.getReady())});
    case Which::GO:
      return ControlMessage(
          AgentGo{Epoch(in.getGo().getEpoch()), Generation(in.getGo().getGeneration())});
    case Which::STEP_REPORT: {
      const auto report = in.getStepReport();
      return ControlMessage(StepReport{Generation(report.getGeneration()), Step(report.getStep()),
                                       report.getLoss(), report.getGradientNorm(),
                                       report.getStop()});
    }
    case Which::VALIDATION_REPORT: {
      const auto report = in.getValidationReport();
      return ControlMessage(ValidationReport{Generation(report.getGeneration()),
                                             Step(report.getStep()), report.getIndex(),
                                             report.getLoss()});
    }
    case Which::SAVE_REPORT:
      return ControlMessage(read_save(in.getSaveReport()));
    case Which::HEARTBEAT:
      return ControlMessage(read_heartbeat(in.getHeartbeat()));
    case Which::FAILURE_REPORT:
      return read_failure(in.getFailureReport());
    case Which::STOP:
      return ControlMessage(
          AgentStop{Epoch(in.getStop().getEpoch()), Generation(in.getStop().getGeneration())});
    case Which::VOTE:
      return ControlMessage(read_vote(in.getVote()));
    case Which::COMMIT:
      return ControlMessage(read_commit(in.getCommit()));
    case Which::LEAVE_REQUEST:
      return ControlMessage(LeaveRequest{});
    case Which::TRY_LINK: {
      const auto link = in.getTryLink();
      return ControlMessage(TryLink{Epoch(link.getEpoch()), NicId(link.getNic()),
                                    HostId(link.getPeer()), link.getAddress().cStr()});
    }
    case Which::LINK_WORKS:
      return ControlMessage(
          LinkWorks{NicId(in.getLinkWorks().getNic()), HostId(in.getLinkWorks().getPeer())});
    case Which::TURNED_AWAY:
      return ControlMessage(TurnedAway{in.getTurnedAway().cStr()});
  }
  return Error(ErrorCode::kCorrupt, "control message of a kind that this version does not know");
}

}  // namespace

Buffer encode(const ControlMessage& message) {
  capnp::MallocMessageBuilder builder;
  auto root = builder.initRoot<schema::ControlMessage>();
  std::visit([&root](const auto& value) { write(value, root); }, message);
  const auto bytes = capnp::computeSerializedSizeInWords(builder) * kWordBytes;
  HOLMES_ASSERT(bytes <= limits::kControlBytesMax, "a control message over the limit");
  Buffer buffer = Buffer::allocate(bytes);
  const auto space = buffer.mutable_bytes();
  kj::ArrayOutputStream out(kj::arrayPtr(reinterpret_cast<kj::byte*>(space.data()), space.size()));
  capnp::writeMessage(out, builder);
  return buffer;
}

Result<ControlMessage> decode(const Buffer& bytes) {
  if (bytes.size() == 0 || bytes.size() % kWordBytes != 0)
    return Error(ErrorCode::kCorrupt,
                 "control message of " + std::to_string(bytes.size()) + " bytes");
  const auto words =
      kj::arrayPtr(reinterpret_cast<const capnp::word*>(bytes.data()), bytes.size() / kWordBytes);
  auto result = capture([&] {
    capnp::ReaderOptions options;
    options.traversalLimitInWords = 4 * words.size() + 64;  // each read of a pointer counts
    options.nestingLimit = 8;
    capnp::FlatArrayMessageReader reader(words, options);
    return read(reader.getRoot<schema::ControlMessage>());
  });
  if (!result) return Error(ErrorCode::kCorrupt, "control message: " + result.error().message());
  return std::move(result).value();
}

}  // namespace holmes::actors
