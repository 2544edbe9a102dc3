// Goal: every message between hosts comes out as it went in, and no bytes from a peer can do more
// than be refused. Method: one message of each kind with no field at its default; then flips, cuts
// and noise from a seed, under the sanitizers.
#include "codec.hpp"

#include <cstring>

#include <gtest/gtest.h>

#include "holmes/base/random.hpp"

namespace holmes::actors {
namespace {

partition::Plan plan() {
  partition::Plan plan;
  plan.strategy = partition::Strategy::kHolmes;
  plan.job = {16, 2, 4};
  plan.stages = {{0, 2, {{DeviceId(0), {0, 1}}, {DeviceId(1), {2, 3}}}},
                 {3, 5, {{DeviceId(2), {0, 3}}}}};
  plan.groups = {{partition::GroupKind::kTied, {DeviceId(0), DeviceId(2)}, {FabricId(3)}, "why"},
                 {partition::GroupKind::kVote, {DeviceId(1)}, {FabricId(1), FabricId(2)}, "votes"}};
  plan.edges = {{StageIndex(0), StageIndex(1), {FabricId(2)}, "the only one"}};
  plan.schedule = partition::ScheduleKind::kNetworkAware;
  plan.stages[0].shares[1].order = "FFBFBBFB";
  plan.stages[0].shares[1].offset_us = 1500;
  return plan;
}

Prepare prepare() {
  return {Epoch(2),
          Generation(3),
          Step(4),
          plan(),
          {{HostId(1), NicId(2), "127.0.0.1:5"}},
          "checkpoints/step-4",
          {{7, StateUse::kKeptShard, DeviceId(1), DeviceId(2), {3, {4, 5}}, DeviceId(6)}},
          0.5,
          true,
          true,
          {{HostId(1), NicId(0)}, {HostId(2), NicId(1)}}};
}

std::vector<ControlMessage> one_of_each() {
  return {
      Join{HostId(3), 77, {{HostId(3), NicId(1), "127.4.2.1:9"}}, "avx2"},
      Welcome{Epoch(1), "[run]\n", "[[host]]\n", "hash", HostId(2)},
      Announce{Epoch(5), Generation(6)},
      AgentQuiet{Generation(7),
                 {{DeviceId(8), Step(9), true, {{1, {2, 3}}, {4, {5, 6}}}}},
                 {{Step(8), 1.5, 2.5, true}}},
      prepare(),
      AgentReady{Generation(8)},
      AgentGo{Epoch(9), Generation(10)},
      StepReport{Generation(11), Step(12), 1.25, 2.5, true},
      ValidationReport{Generation(13), Step(14), 15, 1.5F},
      SaveReport{Generation(16), Step(17), DeviceId(18), {{"model-1", 19, "hash"}}},
      Heartbeat{{{NicId(1), 20, 21}, {NicId(2), 22, 23}}, {{DeviceId(3), 1.5}}},
      FailureReport{Generation(24), true, HostId(25), "eth0", "saving",
                    Error(ErrorCode::kOutOfResources, "disk full")},
      AgentStop{Epoch(2), Generation(26)},
      Vote{Generation(27),
           Step(28),
           DeviceId(36),
           DeviceId(29),
           {{30, 31, {0.5, 0.25}}},
           {{MicroBatch(32), 3.5F}}},
      Commit{Generation(33), Step(34), DeviceId(35), 4.5, 5.5, true, true},
      LeaveRequest{},
      TurnedAway{"no such host"},
      TryLink{Epoch(1), NicId(2), HostId(3), "127.0.0.1:6"},
      LinkWorks{NicId(4), HostId(5)},
  };
}

template <class T>
T round_trip(const T& message) {
  auto decoded = decode(encode(message));
  EXPECT_TRUE(decoded) << decoded.error().message();
  EXPECT_TRUE(std::holds_alternative<T>(*decoded));
  return std::get<T>(*decoded);
}

TEST(Codec, OneMessageOfEachKindIsTested) {
  const auto all = one_of_each();
  ASSERT_EQ(all.size(), std::variant_size_v<ControlMessage>);
  for (std::size_t kind = 0; kind < all.size(); ++kind) EXPECT_EQ(all[kind].index(), kind);
}

TEST(Codec, EncodingWhatWasDecodedGivesTheSameBytes) {
  for (const auto& message : one_of_each()) {
    const auto bytes = encode(message);
    const auto decoded = decode(bytes);
    ASSERT_TRUE(decoded) << "kind " << message.index();
    EXPECT_EQ(decoded->index(), message.index());
    const auto again = encode(*decoded);
    ASSERT_EQ(again.size(), bytes.size()) << "kind " << message.index();
    EXPECT_EQ(std::memcmp(again.data(), bytes.data(), bytes.size()), 0)
        << "kind " << message.index();
  }
}

TEST(Codec, PlansComeOutEqual) {
  const auto out = round_trip(prepare());
  EXPECT_EQ(out.plan, plan());
  EXPECT_EQ(out.addresses, prepare().addresses);
  EXPECT_EQ(out.checkpoint, "checkpoints/step-4");
  EXPECT_EQ(std::tuple(out.epoch, out.generation, out.first_step),
            std::tuple(Epoch(2), Generation(3), Step(4)));
}

TEST(Codec, AnEmptyPlanStaysEmpty) {
  EXPECT_TRUE(round_trip(Prepare{}).plan.empty());
}

TEST(Codec, VotesAndCommitsKeepTheirBits) {
  Vote vote{Generation(1), Step(2), DeviceId(7), DeviceId(3), {{4, 5, {0.1, 1e-300, 1e300}}}, {}};
  vote.losses.push_back({MicroBatch(6), 0.1F});
  const auto out = round_trip(vote);
  ASSERT_EQ(out.squares.size(), 1U);
  EXPECT_EQ(out.squares[0].squares, vote.squares[0].squares);
  EXPECT_EQ(out.squares[0].layer, 4U);
  EXPECT_EQ(out.squares[0].first_chunk, 5U);
  EXPECT_EQ(out.losses[0].loss, 0.1F);
  EXPECT_EQ(out.losses[0].micro_batch, MicroBatch(6));
  const auto commit =
      round_trip(Commit{Generation(1), Step(2), DeviceId(3), 0.1, 0.3, true, false});
  EXPECT_EQ(std::tuple(commit.generation, commit.step, commit.to, commit.gradient_norm, commit.loss,
                       commit.save, commit.stop),
            std::tuple(Generation(1), Step(2), DeviceId(3), 0.1, 0.3, true, false));
}

TEST(Codec, ReportsComeOutEqual) {
  const auto failure = round_trip(std::get<FailureReport>(one_of_each()[11]));
  EXPECT_EQ(failure.error, Error(ErrorCode::kOutOfResources, "disk full"));
  EXPECT_EQ(std::tuple(failure.generation, failure.has_peer, failure.peer, failure.nic,
                       failure.operation),
            std::tuple(Generation(24), true, HostId(25), "eth0", "saving"));
  const auto join = round_trip(std::get<Join>(one_of_each()[0]));
  EXPECT_EQ(std::tuple(join.host, join.process, join.build), std::tuple(HostId(3), 77U, "avx2"));
  EXPECT_EQ(join.nics, std::get<Join>(one_of_each()[0]).nics);
  const auto save = round_trip(std::get<SaveReport>(one_of_each()[9]));
  ASSERT_EQ(save.files.size(), 1U);
  EXPECT_EQ(std::tuple(save.files[0].name, save.files[0].bytes, save.files[0].hash),
            std::tuple("model-1", 19U, "hash"));
  const auto beat = round_trip(std::get<Heartbeat>(one_of_each()[10]));
  ASSERT_EQ(beat.nics.size(), 2U);
  EXPECT_EQ(std::tuple(beat.nics[1].nic, beat.nics[1].bytes_sent, beat.nics[1].bytes_received),
            std::tuple(NicId(2), 22U, 23U));
  const auto step = round_trip(std::get<StepReport>(one_of_each()[7]));
  EXPECT_EQ(std::tuple(step.generation, step.step, step.loss, step.gradient_norm, step.stop),
            std::tuple(Generation(11), Step(12), 1.25, 2.5, true));
}

/// What a receiver does with bytes: decode, and check a plan before it is used.
bool accepted(const Buffer& bytes) {
  const auto message = decode(bytes);
  if (!message) {
    EXPECT_EQ(message.error().code(), ErrorCode::kCorrupt);
    return false;
  }
  if (const auto* order = std::get_if<Prepare>(&*message)) {
    partition::Cluster cluster;
    return partition::validate(order->plan, cluster, 6).has_value();
  }
  return true;
}

Buffer bytes_of(std::span<const std::byte> from) {
  Buffer buffer = Buffer::allocate(from.size());
  if (!from.empty()) std::memcpy(buffer.mutable_bytes().data(), from.data(), from.size());
  return buffer;
}

TEST(Codec, ChangedBytesAreDecodedOrRefusedAndNeverMore) {
  Random random(2026);
  std::size_t refused = 0;
  for (const auto& message : one_of_each()) {
    const auto good = encode(message);
    for (int round = 0; round < 1500; ++round) {
      Buffer bad = bytes_of(good.bytes());
      const auto flips = 1 + random.below(4);
      for (std::uint64_t i = 0; i < flips; ++i)
        bad.mutable_bytes()[random.below(bad.size())] ^=
            static_cast<std::byte>(1 + random.below(255));
      if (!accepted(bad)) ++refused;
    }
  }
  EXPECT_GT(refused, 1000U);
}

TEST(Codec, CutMessagesAreRefused) {
  for (const auto& message : one_of_each()) {
    const auto good = encode(message);
    for (std::size_t size = 0; size < good.size(); ++size) {
      const auto decoded = decode(bytes_of(good.bytes().first(size)));
      ASSERT_FALSE(decoded) << "kind " << message.index() << ", " << size << " bytes";
      EXPECT_EQ(decoded.error().code(), ErrorCode::kCorrupt);
    }
  }
}

TEST(Codec, NoiseIsDecodedOrRefusedAndNeverMore) {
  Random random(7);
  for (int round = 0; round < 5000; ++round) {
    Buffer noise = Buffer::allocate(8 * (1 + random.below(32)));
    for (auto& byte : noise.mutable_bytes()) byte = static_cast<std::byte>(random.below(256));
    if (round % 2 == 0) {  // a plausible beginning: one segment of the right length
      const std::uint32_t head[2] = {0, static_cast<std::uint32_t>(noise.size() / 8 - 1)};
      std::memcpy(noise.mutable_bytes().data(), head, sizeof(head));
    }
    accepted(noise);
  }
}

}  // namespace
}  // namespace holmes::actors
