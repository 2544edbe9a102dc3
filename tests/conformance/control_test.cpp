// Goal: connections are made between the right peers, and control messages arrive once, in order.
// Method: the suite's pair of NICs on each backend.
#include "holmes/base/limits.hpp"
#include "suite.hpp"

namespace holmes::transport::conformance {
namespace {

TEST_P(Suite, BothEndsKnowWhoThePeerIs) {
  connect_pair();
  EXPECT_EQ(a_->peer().host, HostId(1));
  EXPECT_EQ(a_->peer().nic, NicId(1));
  EXPECT_EQ(b_->peer().host, HostId(0));
  EXPECT_EQ(b_->peer().epoch, Epoch(7));
  EXPECT_EQ(b_->peer().job, "job-1");
}

TEST_P(Suite, RefusesAnotherJobReadably) {
  listen(identity(1, "job-2"));
  const auto dialled = dial(listener_->endpoint(), identity(0), std::chrono::seconds(10));
  ASSERT_TRUE(finish(dialled));
  ASSERT_TRUE(dialled->error);
  EXPECT_EQ(dialled->error->code(), ErrorCode::kRefused);
  EXPECT_NE(dialled->error->message().find("job-2"), std::string::npos);
  ASSERT_TRUE(run_until([&] { return !refused_.empty(); }));
  EXPECT_NE(refused_.front().message().find("job-1"), std::string::npos);
  EXPECT_EQ(b_, nullptr);
}

TEST_P(Suite, ConnectingToNobodyFailsOnce) {
  const auto dialled = dial(world_->nobody(), identity(0), std::chrono::milliseconds(200));
  ASSERT_TRUE(finish(dialled));
  settle();
  EXPECT_EQ(dialled->count, 1);
  ASSERT_TRUE(dialled->error);
  EXPECT_TRUE(dialled->error->code() == ErrorCode::kUnavailable ||
              dialled->error->code() == ErrorCode::kTimeout);
}

TEST_P(Suite, ListeningTwiceAtOnePlaceIsAnError) {
  listen(identity(1));
  in_task([&] {
    const auto second = world_->context(1).listen(
        listener_->endpoint(), identity(1), [](const std::shared_ptr<Connection>&) {},
        [](const Error&) {});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), ErrorCode::kUnavailable);
    EXPECT_NE(second.error().message().find("in use"), std::string::npos);
  });
}

TEST_P(Suite, NobodyConnectsOnceTheListenerIsGoneButConnectionsStay) {
  connect_pair();
  const auto endpoint = listener_->endpoint();
  const auto kept = a_;
  in_task([&] { listener_.reset(); });
  const auto dialled = dial(endpoint, identity(0), std::chrono::milliseconds(300));
  ASSERT_TRUE(finish(dialled));
  EXPECT_TRUE(dialled->error);
  ASSERT_TRUE(finish(send_control(kept, "still here")));
  ASSERT_TRUE(run_until([&] { return controls_b_.size() == 1; }));
}

TEST_P(Suite, ControlMessagesArriveOnceAndInOrder) {
  connect_pair();
  constexpr int kCount = 500;
  std::vector<std::shared_ptr<Outcome>> sent;
  for (int i = 0; i < kCount; ++i) {
    sent.push_back(send_control(a_, "message " + std::to_string(i)));
    if (i % 3 == 0) send_control(b_, "answer " + std::to_string(i));
  }
  ASSERT_TRUE(run_until([&] { return controls_b_.size() == kCount; }));
  settle();
  ASSERT_EQ(controls_b_.size(), static_cast<std::size_t>(kCount));
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ(controls_b_[static_cast<std::size_t>(i)], "message " + std::to_string(i));
    EXPECT_TRUE(sent[static_cast<std::size_t>(i)]->ok());
  }
  EXPECT_EQ(controls_a_.size(), 167u);
}

TEST_P(Suite, ControlMessagesOfAnySizeArriveWhole) {
  connect_pair();
  const std::vector<std::size_t> sizes = {
      0, 1, 63, 64, 4095, 16384, 65536 + 17, 1 << 20, limits::kControlBytesMax};
  for (const auto size : sizes)
    send_control(a_, std::string(size, static_cast<char>('a' + size % 26)));
  ASSERT_TRUE(run_until([&] { return controls_b_.size() == sizes.size(); }));
  for (std::size_t i = 0; i < sizes.size(); ++i)
    EXPECT_EQ(controls_b_[i], std::string(sizes[i], static_cast<char>('a' + sizes[i] % 26)));
}

TEST_P(Suite, AControlMessageOverTheLimitFailsAlone) {
  connect_pair();
  const auto large = send_control(a_, std::string(limits::kControlBytesMax + 1, 'x'));
  const auto small = send_control(a_, "small");
  ASSERT_TRUE(finish(large));
  ASSERT_TRUE(large->error);
  EXPECT_EQ(large->error->code(), ErrorCode::kInvalidArgument);
  ASSERT_TRUE(run_until([&] { return controls_b_.size() == 1; }));
  EXPECT_TRUE(small->ok());
}

TEST_P(Suite, MessagesThatComeBeforeTheHandlerAreKept) {
  listen(identity(1));
  std::shared_ptr<Connection> late;
  in_task([&] {
    world_->context(0).connect(listener_->endpoint(), identity(0), std::chrono::seconds(10),
                               [&](Result<std::shared_ptr<Connection>> result) { late = *result; });
  });
  ASSERT_TRUE(run_until([&] { return late != nullptr && b_ != nullptr; }));
  for (int i = 0; i < 5; ++i) send_control(b_, std::to_string(i));
  settle();
  in_task([&] {
    late->on_control([this](const Buffer& message) { controls_a_.push_back(text(message)); });
    EXPECT_TRUE(controls_a_.empty());
  });
  for (int i = 5; i < 8; ++i) send_control(b_, std::to_string(i));
  ASSERT_TRUE(run_until([&] { return controls_a_.size() == 8; }));
  EXPECT_EQ(controls_a_, (std::vector<std::string>{"0", "1", "2", "3", "4", "5", "6", "7"}));
  in_task([&] { late->close(); });
}

TEST_P(Suite, AHandlerMayCloseAndDropItsConnection) {
  connect_pair();
  in_task([&] {
    a_->send_control(pattern(pool_, 10, 1), [this](const Status&) {
      a_->close();
      a_.reset();
    });
  });
  ASSERT_TRUE(run_until([&] { return !closed_b_.empty(); }));
  EXPECT_EQ(a_, nullptr);
}

}  // namespace
}  // namespace holmes::transport::conformance
