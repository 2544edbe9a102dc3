// Goal: payloads go whole and once into the buffers that were reserved for them, whoever comes
// first, and old generations leave no trace.
// Method: the suite's pair of NICs on each backend, with payloads of known content.
#include "holmes/base/limits.hpp"
#include "suite.hpp"

namespace holmes::transport::conformance {
namespace {

TEST_P(Suite, APayloadArrivesWhenTheSenderComesFirst) {
  connect_pair();
  const auto sent = send(a_, tag(1), 1000, 5);
  settle();
  EXPECT_EQ(sent->count, 0) << "sent although nobody has a buffer";
  const auto received = receive(b_, tag(1), 1000);
  ASSERT_TRUE(finish(received));
  ASSERT_TRUE(finish(sent));
  EXPECT_TRUE(sent->ok());
  EXPECT_TRUE(has_pattern(received->buffer, 1000, 5));
}

TEST_P(Suite, APayloadArrivesWhenTheReceiverComesFirst) {
  connect_pair();
  const auto received = receive(b_, tag(1), 1000);
  settle();
  EXPECT_EQ(received->count, 0);
  const auto sent = send(a_, tag(1), 1000, 5);
  ASSERT_TRUE(finish(received));
  ASSERT_TRUE(finish(sent));
  EXPECT_TRUE(has_pattern(received->buffer, 1000, 5));
}

TEST_P(Suite, PayloadsOfAnySizeArriveWholeAndInTheReservedMemory) {
  connect_pair();
  const std::size_t chunk = limits::kChunkBytesMax;
  std::uint32_t number = 0;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{4097},
                                 chunk - 1, chunk, chunk + 1, 5 * chunk + 77}) {
    auto buffer = pool_.acquire(size).value();
    const auto* memory = buffer.data();
    Outcome received;
    in_task([&] {
      b_->receive_bulk(tag(number), shape(size), std::move(buffer), [&](Result<Buffer> result) {
        ++received.count;
        if (result) received.buffer = std::move(*result);
      });
    });
    const auto sent = send(a_, tag(number), size, size);
    ASSERT_TRUE(run_until([&] { return received.done() && sent->done(); })) << size;
    EXPECT_TRUE(has_pattern(received.buffer, size, size)) << size;
    EXPECT_EQ(received.buffer.data(), memory) << "the payload was copied";
    EXPECT_TRUE(received.buffer.unique());
    ++number;
  }
  EXPECT_EQ(a_->stats().bulk_sent, 8u);
  EXPECT_EQ(b_->stats().bulk_received, 8u);
}

TEST_P(Suite, ManyTagsInterleaveInBothDirections) {
  connect_pair();
  constexpr std::uint32_t kCount = 60;
  std::vector<std::shared_ptr<Outcome>> sent;
  std::vector<std::shared_ptr<Outcome>> received;
  const auto bytes = [](std::uint32_t i) { return std::size_t{1000} + i * 9973; };
  for (std::uint32_t i = 0; i < kCount; ++i) {
    sent.push_back(send(a_, tag(i), bytes(i), i));
    received.push_back(receive(a_, tag(1000 + i), bytes(i)));
  }
  for (std::uint32_t i = kCount; i-- > 0;) {
    received.push_back(receive(b_, tag(i), bytes(i)));
    sent.push_back(send(b_, tag(1000 + i), bytes(i), 1000 + i));
  }
  const auto all_done = [](const auto& outcomes) {
    return std::all_of(outcomes.begin(), outcomes.end(), [](const auto& o) { return o->done(); });
  };
  ASSERT_TRUE(run_until([&] { return all_done(sent) && all_done(received); }));
  for (std::uint32_t i = 0; i < kCount; ++i) {
    EXPECT_TRUE(has_pattern(received[i]->buffer, bytes(i), 1000 + i));
    const auto& other = received[2 * kCount - 1 - i];
    EXPECT_TRUE(has_pattern(other->buffer, bytes(i), i));
  }
  for (const auto& outcome : sent) EXPECT_TRUE(outcome->ok());
}

TEST_P(Suite, ControlPassesABulkPayload) {
  connect_pair();
  constexpr std::size_t kBytes = 16 * kMiB;
  const auto received = receive(b_, tag(1), kBytes);
  settle();
  const auto sent = send(a_, tag(1), kBytes);
  send_control(a_, "urgent");
  ASSERT_TRUE(run_until([&] { return !controls_b_.empty(); }));
  EXPECT_EQ(received->count, 0) << "control waited behind bulk";
  ASSERT_TRUE(finish(received));
  ASSERT_TRUE(finish(sent));
}

TEST_P(Suite, ASizeThatDiffersEndsTheConnectionWithAReason) {
  connect_pair();
  const auto sent = send(a_, tag(1), 1000);
  const auto received = receive(b_, tag(1), 1001);
  ASSERT_TRUE(finish(sent));
  ASSERT_TRUE(finish(received));
  ASSERT_TRUE(sent->error && received->error);
  EXPECT_EQ(sent->error->code(), ErrorCode::kCorrupt);
  EXPECT_EQ(received->error->code(), ErrorCode::kCorrupt);
  EXPECT_NE(received->error->message().find("1001"), std::string::npos);
  ASSERT_TRUE(run_until([&] { return closed_a_.size() == 1 && closed_b_.size() == 1; }));
}

TEST_P(Suite, AShapeThatDiffersEndsTheConnectionWithAReason) {
  connect_pair();
  const auto received = receive(b_, tag(1), 16);
  in_task([&] {
    a_->send_bulk(tag(1), {DType::kF32, {2, 2}}, pattern(pool_, 16, 1), [](const Status&) {});
  });
  ASSERT_TRUE(finish(received));
  ASSERT_TRUE(received->error);
  EXPECT_EQ(received->error->code(), ErrorCode::kCorrupt);
  EXPECT_NE(received->error->message().find("2 2"), std::string::npos);
  ASSERT_TRUE(run_until([&] { return closed_a_.size() == 1 && closed_b_.size() == 1; }));
}

TEST_P(Suite, ATagThatIsPendingIsRefusedAlone) {
  connect_pair();
  const auto first = receive(b_, tag(1), 100);
  const auto second = receive(b_, tag(1), 100);
  const auto third = send(b_, tag(2), 100);
  const auto fourth = send(b_, tag(2), 100);
  ASSERT_TRUE(finish(second));
  ASSERT_TRUE(finish(fourth));
  ASSERT_TRUE(second->error && fourth->error);
  EXPECT_EQ(second->error->code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(fourth->error->code(), ErrorCode::kInvalidArgument);
  send(a_, tag(1), 100, 9);
  receive(a_, tag(2), 100);
  ASSERT_TRUE(finish(first));
  ASSERT_TRUE(finish(third));
  EXPECT_TRUE(has_pattern(first->buffer, 100, 9));
}

TEST_P(Suite, SupersedeCompletesOldOperationsOnceAndNewOnesPass) {
  connect_pair();
  const auto waiting_send = send(a_, tag(1, 1), 1000);
  const auto waiting_receive = receive(a_, tag(2, 1), 1000);
  const auto later_receive = receive(a_, tag(2, 2), 1000);
  in_task([&] { a_->supersede(Generation(2)); });
  ASSERT_TRUE(finish(waiting_send));
  ASSERT_TRUE(finish(waiting_receive));
  ASSERT_TRUE(waiting_send->error && waiting_receive->error);
  EXPECT_EQ(waiting_send->error->code(), ErrorCode::kSuperseded);
  EXPECT_EQ(waiting_receive->error->code(), ErrorCode::kSuperseded);
  const auto old = send(a_, tag(3, 1), 10);
  ASSERT_TRUE(finish(old));
  EXPECT_EQ(old->error->code(), ErrorCode::kSuperseded);
  send(b_, tag(2, 2), 1000, 4);
  ASSERT_TRUE(finish(later_receive));
  EXPECT_TRUE(has_pattern(later_receive->buffer, 1000, 4));
  EXPECT_EQ(waiting_send->count, 1);
  EXPECT_TRUE(closed_a_.empty() && closed_b_.empty());
}

TEST_P(Suite, SupersedeAtTheReceiverInTheMiddleOfAPayload) {
  connect_pair();
  constexpr std::size_t kBytes = 32 * kMiB;
  const auto received = receive(b_, tag(1, 1), kBytes);
  const auto sent = send(a_, tag(1, 1), kBytes);
  ASSERT_TRUE(run_until([&] { return b_->stats().bytes_received > kMiB; }));
  in_task([&] { b_->supersede(Generation(2)); });
  ASSERT_TRUE(finish(received));
  ASSERT_TRUE(received->error);
  EXPECT_EQ(received->error->code(), ErrorCode::kSuperseded);
  const auto next_receive = receive(b_, tag(1, 2), 5000);
  const auto next_send = send(a_, tag(1, 2), 5000, 8);
  ASSERT_TRUE(finish(next_receive));
  EXPECT_TRUE(has_pattern(next_receive->buffer, 5000, 8));
  ASSERT_TRUE(finish(sent));
  EXPECT_GT(b_->stats().stale_dropped, 0u);
  EXPECT_EQ(received->count, 1);
}

TEST_P(Suite, SupersedeAtTheSenderInTheMiddleOfAPayload) {
  connect_pair();
  constexpr std::size_t kBytes = 32 * kMiB;
  const auto received = receive(b_, tag(1, 1), kBytes);
  const auto sent = send(a_, tag(1, 1), kBytes);
  ASSERT_TRUE(run_until([&] { return b_->stats().bytes_received > kMiB; }));
  in_task([&] { a_->supersede(Generation(2)); });
  ASSERT_TRUE(finish(sent));
  ASSERT_TRUE(sent->error);
  EXPECT_EQ(sent->error->code(), ErrorCode::kSuperseded);
  const auto next_receive = receive(b_, tag(1, 2), 5000);
  const auto next_send = send(a_, tag(1, 2), 5000, 8);
  ASSERT_TRUE(finish(next_receive));
  EXPECT_TRUE(has_pattern(next_receive->buffer, 5000, 8));
  EXPECT_LT(b_->stats().bytes_received, kBytes) << "the sender did not stop";
  EXPECT_EQ(received->count, 0);
  in_task([&] { b_->supersede(Generation(2)); });
  ASSERT_TRUE(finish(received));
  EXPECT_EQ(received->error->code(), ErrorCode::kSuperseded);
}

TEST_P(Suite, ASteadyStateAllocatesNoPayloadMemory) {
  connect_pair();
  const auto round = [&](std::uint32_t number) {
    const auto received = receive(b_, tag(number), kMiB);
    const auto sent = send(a_, tag(number), kMiB);
    ASSERT_TRUE(finish(received));
    ASSERT_TRUE(finish(sent));
  };
  round(0);
  const auto before = pool_.stats().allocation_count;
  for (std::uint32_t i = 1; i < 5; ++i) round(i);
  EXPECT_EQ(pool_.stats().allocation_count, before);
}

}  // namespace
}  // namespace holmes::transport::conformance
