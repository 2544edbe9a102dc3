// Goal: whatever ends a connection, every operation completes exactly once, the error says who, and
// nothing works afterwards.
// Method: the suite's pair of NICs on each backend, ended in every way that the interface has.
#include "holmes/base/limits.hpp"
#include "suite.hpp"

namespace holmes::transport::conformance {
namespace {

TEST_P(Suite, CloseCompletesEverythingPendingAndIsIdempotent) {
  connect_pair();
  const auto sent = send(a_, tag(1), 1000);
  const auto received = receive(a_, tag(2), 1000);
  in_task([&] {
    a_->close();
    a_->close();
    EXPECT_TRUE(closed_a_.empty());
  });
  ASSERT_TRUE(finish(sent));
  ASSERT_TRUE(finish(received));
  ASSERT_TRUE(run_until([&] { return closed_a_.size() == 1 && closed_b_.size() == 1; }));
  in_task([&] { a_->close(); });
  settle();
  EXPECT_EQ(sent->count, 1);
  EXPECT_EQ(received->count, 1);
  EXPECT_EQ(sent->error->code(), ErrorCode::kClosed);
  EXPECT_EQ(received->error->code(), ErrorCode::kClosed);
  EXPECT_EQ(closed_a_.size(), 1u);
  EXPECT_EQ(closed_b_.size(), 1u);
}

TEST_P(Suite, OnClosedRunsAfterAllPendingOperations) {
  connect_pair();
  std::size_t completed = 0;
  in_task([&] {
    b_->receive_bulk(tag(2), shape(10), pool_.acquire(10).value(),
                     [&](const Result<Buffer>&) { ++completed; });
    b_->send_bulk(tag(1), shape(10), pattern(pool_, 10, 1), [&](const Status&) { ++completed; });
    b_->close();
  });
  std::size_t completed_before_closed = 0;
  ASSERT_TRUE(run_until([&] {
    if (closed_b_.empty()) completed_before_closed = completed;
    return !closed_b_.empty();
  }));
  EXPECT_EQ(completed_before_closed, 2u);
}

TEST_P(Suite, ErrorsAreStickyAndNameThePeer) {
  connect_pair();
  in_task([&] { b_->close(); });
  ASSERT_TRUE(run_until([&] { return closed_a_.size() == 1; }));
  const auto first = closed_a_.front();
  EXPECT_EQ(first.code(), ErrorCode::kClosed);
  EXPECT_NE(first.message().find("host 1"), std::string::npos) << first.message();
  const auto control = send_control(a_, "hello?");
  const auto sent = send(a_, tag(1), 10);
  const auto received = receive(a_, tag(2), 10);
  for (const auto& outcome : {control, sent, received}) {
    ASSERT_TRUE(finish(outcome));
    ASSERT_TRUE(outcome->error);
    EXPECT_EQ(*outcome->error, first);
  }
  std::optional<Error> late;
  in_task([&] { a_->on_closed([&](const Error& error) { late = error; }); });
  ASSERT_TRUE(run_until([&] { return late.has_value(); }));
  EXPECT_EQ(*late, first);
}

TEST_P(Suite, APeerThatGoesInTheMiddleOfAPayload) {
  connect_pair();
  constexpr std::size_t kBytes = 32 * kMiB;
  const auto received = receive(b_, tag(1), kBytes);
  const auto sent = send(a_, tag(1), kBytes);
  ASSERT_TRUE(run_until([&] { return b_->stats().bytes_received > kMiB; }));
  in_task([&] { a_.reset(); });  // dropping is closing
  ASSERT_TRUE(finish(received));
  ASSERT_TRUE(finish(sent));
  ASSERT_TRUE(received->error && sent->error);
  EXPECT_EQ(received->error->code(), ErrorCode::kClosed);
  EXPECT_NE(received->error->message().find("host 0"), std::string::npos);
  ASSERT_TRUE(run_until([&] { return closed_b_.size() == 1; }));
  settle();
  EXPECT_EQ(received->count, 1);
  EXPECT_EQ(sent->count, 1);
}

TEST_P(Suite, WhatWasSentBeforeClosingArrives) {
  connect_pair();
  const auto received = receive(b_, tag(1), 3000);
  const auto sent = send(a_, tag(1), 3000, 6);
  send_control(a_, "last words");
  ASSERT_TRUE(finish(sent));
  in_task([&] { a_->close(); });
  ASSERT_TRUE(run_until([&] { return closed_b_.size() == 1; }));
  EXPECT_TRUE(received->ok());
  EXPECT_TRUE(has_pattern(received->buffer, 3000, 6));
  EXPECT_EQ(controls_b_, std::vector<std::string>{"last words"});
}

TEST_P(Suite, OperationsBeyondTheBoundAreRefusedAlone) {
  connect_pair();
  constexpr std::uint32_t kMax = limits::kConnectionOperationsMax;
  std::size_t completed = 0;
  std::optional<Error> over;
  in_task([&] {
    for (std::uint32_t i = 0; i < kMax; ++i)
      a_->receive_bulk(tag(i), shape(1), pool_.acquire(1).value(),
                       [&](const Result<Buffer>&) { ++completed; });
    a_->send_bulk(tag(kMax), shape(1), pattern(pool_, 1, 1),
                  [&](const Status& status) { over = status.error(); });
  });
  ASSERT_TRUE(run_until([&] { return over.has_value(); }));
  EXPECT_EQ(over->code(), ErrorCode::kOutOfResources);
  EXPECT_EQ(completed, 0u);
  in_task([&] { a_->close(); });
  ASSERT_TRUE(run_until([&] { return completed == kMax; }));
}

TEST_P(Suite, ABufferThatIsSharedIsRefused) {
  connect_pair();
  auto buffer = pool_.acquire(10).value();
  std::optional<Error> error;
  in_task([&] {
    a_->receive_bulk(tag(1), shape(10), buffer,
                     [&](const Result<Buffer>& result) { error = result.error(); });
  });
  ASSERT_TRUE(run_until([&] { return error.has_value(); }));
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace holmes::transport::conformance
