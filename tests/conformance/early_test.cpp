// Goal: short payloads of collectives go without waiting for a reservation, arrive whole whatever
// comes first, and never exceed the window; what nobody takes is dropped with its generation.
// Method: the suite's pair on each backend, reserving before, after, never, and wrongly.
#include <algorithm>

#include "link/early.hpp"
#include "suite.hpp"

namespace holmes::transport::conformance {
namespace {

class EarlyPayloads : public Suite {
 protected:
  static BulkTag early_tag(std::uint32_t number, std::uint64_t generation = 1) {
    auto early = tag(number, generation);
    early.kind = BulkKind::kCollective;
    return early;
  }
  std::vector<std::shared_ptr<Outcome>> send_many(std::uint32_t count, std::uint64_t generation) {
    std::vector<std::shared_ptr<Outcome>> sends;
    for (std::uint32_t i = 0; i < count; ++i)
      sends.push_back(send(a_, early_tag(i, generation), kBytes, i));
    return sends;
  }
  static std::size_t done(const std::vector<std::shared_ptr<Outcome>>& outcomes) {
    return static_cast<std::size_t>(
        std::count_if(outcomes.begin(), outcomes.end(), [](const auto& o) { return o->ok(); }));
  }

  static constexpr std::size_t kBytes = 100;
  static constexpr std::uint32_t kOverWindow = kEarlyCountMax + 44;
};

TEST_P(EarlyPayloads, GoBeforeTheyAreReservedFor) {
  connect_pair();
  std::uint32_t number = 0;
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{4096}, kEarlyBytesMax}) {
    const auto sent = send(a_, early_tag(number), bytes, number);
    ASSERT_TRUE(finish(sent) && sent->ok()) << bytes;
    settle();
    const auto got = receive(b_, early_tag(number), bytes);
    ASSERT_TRUE(finish(got) && got->ok()) << bytes;
    EXPECT_TRUE(has_pattern(got->buffer, bytes, number)) << bytes;
    ++number;
  }
}

/// Keeps what it is told.
class Note final : public PayloadSink {
 public:
  Status piece(std::size_t offset, std::span<const std::byte> part) override {
    EXPECT_EQ(offset, bytes.size());
    bytes.insert(bytes.end(), part.begin(), part.end());
    return {};
  }
  std::vector<std::byte> bytes;
};

TEST_P(EarlyPayloads, GoThroughASinkWithoutMemory) {
  connect_pair();
  for (const bool first : {true, false}) {
    const auto note = std::make_shared<Note>();
    const auto sent = send(a_, early_tag(first), kBytes, 3);
    if (first) settle();
    bool landed = false;
    in_task([&] {
      b_->receive_bulk(early_tag(first), shape(kBytes), Landing{kBytes, {}, {}, note},
                       [&](const Status& status) { landed = status.has_value(); });
    });
    ASSERT_TRUE(run_until([&] { return landed && sent->done(); }));
    const auto expected = pattern(pool_, kBytes, 3);
    EXPECT_TRUE(std::ranges::equal(note->bytes, expected.bytes()));
  }
}

TEST_P(EarlyPayloads, ArriveWhereWasReservedBefore) {
  connect_pair();
  for (std::uint32_t number = 0; number < 20; ++number) {
    const auto got = receive(b_, early_tag(number), kBytes);
    const auto sent = send(a_, early_tag(number), kBytes, number);
    ASSERT_TRUE(finish(got) && got->ok());
    ASSERT_TRUE(finish(sent) && sent->ok());
    EXPECT_TRUE(has_pattern(got->buffer, kBytes, number));
  }
}

TEST_P(EarlyPayloads, WaitWhenTheWindowIsFull) {
  connect_pair();
  const auto sends = send_many(kOverWindow, 1);
  ASSERT_TRUE(run_until([&] { return done(sends) == kEarlyCountMax; }));
  settle();
  EXPECT_EQ(done(sends), kEarlyCountMax);
  for (std::uint32_t i = 0; i < kOverWindow; ++i) {
    const auto got = receive(b_, early_tag(i), kBytes);
    ASSERT_TRUE(finish(got) && got->ok()) << i;
    EXPECT_TRUE(has_pattern(got->buffer, kBytes, i)) << i;
  }
  EXPECT_EQ(done(sends), kOverWindow);
}

TEST_P(EarlyPayloads, OfAnOldGenerationAreDroppedAndTheWindowIsFreeAgain) {
  connect_pair();
  const auto old = send_many(kOverWindow, 1);
  ASSERT_TRUE(run_until([&] { return done(old) == kEarlyCountMax; }));
  settle();
  in_task([&] {
    a_->supersede(Generation(2));
    b_->supersede(Generation(2));
  });
  ASSERT_TRUE(run_until([&] {
    return std::all_of(old.begin(), old.end(), [](const auto& o) { return o->done(); });
  }));
  EXPECT_EQ(old.back()->error->code(), ErrorCode::kSuperseded);
  const auto sends = send_many(kEarlyCountMax, 2);
  ASSERT_TRUE(run_until([&] { return done(sends) == kEarlyCountMax; }));
  const auto got = receive(b_, early_tag(7, 2), kBytes);
  ASSERT_TRUE(finish(got) && got->ok());
  EXPECT_TRUE(has_pattern(got->buffer, kBytes, 7));
}

TEST_P(EarlyPayloads, OfAnotherSizeEndTheConnection) {
  connect_pair();
  const auto sent = send(a_, early_tag(1), kBytes);
  ASSERT_TRUE(finish(sent));
  settle();
  const auto got = receive(b_, early_tag(1), kBytes + 1);
  ASSERT_TRUE(finish(got));
  ASSERT_FALSE(got->ok());
  EXPECT_EQ(got->error->code(), ErrorCode::kCorrupt);
  ASSERT_TRUE(run_until([&] { return !closed_a_.empty(); }));
}

TEST_P(EarlyPayloads, EndWithTheConnection) {
  connect_pair();
  const auto sends = send_many(kOverWindow, 1);
  ASSERT_TRUE(run_until([&] { return done(sends) == kEarlyCountMax; }));
  in_task([&] { b_->close(); });
  ASSERT_TRUE(run_until([&] { return sends.back()->done(); }));
  EXPECT_EQ(sends.back()->error->code(), ErrorCode::kClosed);
}

INSTANTIATE_TEST_SUITE_P(Backends, EarlyPayloads, ::testing::ValuesIn(backends()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace holmes::transport::conformance
