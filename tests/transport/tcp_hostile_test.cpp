// Goal: a peer that speaks garbage, an old version, another job's identity, half a hello or nothing
// is refused with a reason within the deadline, and disturbs nobody.
// Method: plain sockets against a listener that serves a good pair at the same time.
#include <gtest/gtest.h>

#include "holmes/base/limits.hpp"
#include "holmes/transport/tcp.hpp"
#include "raw_peer.hpp"

namespace holmes::transport {
namespace {

constexpr Duration kDeadline = std::chrono::milliseconds(150);
constexpr Duration kPatience = std::chrono::seconds(20);

Identity who(std::uint32_t host) {
  return {"job-1", HostId(host), NicId(0), Epoch(1)};
}

wire::Hello good_hello(wire::Purpose purpose) {
  return {wire::schema_hash(), "job-1", HostId(5), NicId(2), Epoch(1), purpose, 1234};
}

class TcpHostile : public ::testing::Test {
 protected:
  TcpHostile() : context_(make_tcp_context(loop_, {"127.0.0.1", false, kDeadline, Logger()})) {
    auto listener = context_->listen(
        {"127.0.0.1:0"}, who(1),
        [this](std::shared_ptr<Connection> connection) {
          connection->on_closed([this](const Error& error) { closed_.push_back(error); });
          connection->on_control([this](const Buffer&) { ++controls_; });
          accepted_.push_back(std::move(connection));
        },
        [this](const Error& error) { refused_.push_back(error); });
    listener_ = std::move(listener).value();
    context_->connect(listener_->endpoint(), who(2), kPatience,
                      [this](Result<std::shared_ptr<Connection>> result) { good_ = *result; });
    EXPECT_TRUE(run_until([this] { return good_ && accepted_.size() == 1; }));
  }

  ~TcpHostile() override {
    // Nobody else was disturbed.
    good_->send_control(Buffer::allocate(10), [](const Status&) {});
    EXPECT_TRUE(run_until([this] { return controls_ == 1; }));
  }

  bool run_until(const std::function<bool()>& done) { return loop_.run_until(done, kPatience); }
  RawSocket dial() { return RawSocket::dial(listener_->endpoint().address); }

  /// Waits for the refusal; returns what the peer was told.
  std::string refused(RawSocket& peer, ErrorCode code) {
    EXPECT_TRUE(run_until([this] { return !refused_.empty(); }));
    EXPECT_EQ(refused_.size(), 1u);
    EXPECT_EQ(refused_.front().code(), code) << refused_.front().message();
    EXPECT_NE(refused_.front().message().find("127.0.0.1:"), std::string::npos)
        << "names who: " << refused_.front().message();
    EXPECT_TRUE(run_until([&] { return peer.readable(); }));
    return refusal_in(peer.read());
  }

  /// A whole handshake by hand.
  std::pair<RawSocket, RawSocket> shake_hands() {
    auto control = dial();
    control.send(wire::encode(good_hello(wire::Purpose::kControl)));
    EXPECT_TRUE(run_until([&] { return control.readable(); }));
    auto bulk = dial();
    bulk.send(wire::encode(good_hello(wire::Purpose::kBulk)));
    EXPECT_TRUE(run_until([&] { return accepted_.size() == 2; }));
    control.read();
    bulk.read();
    return {std::move(control), std::move(bulk)};
  }

  /// The link that was made by hand ended with this error.
  void expect_closed(ErrorCode code, const std::string& part) {
    ASSERT_TRUE(run_until([this] { return closed_.size() == 1; }));
    EXPECT_EQ(closed_.front().code(), code);
    EXPECT_NE(closed_.front().message().find("host 5, NIC 2 at 127.0.0.1:"), std::string::npos)
        << closed_.front().message();
    EXPECT_NE(closed_.front().message().find(part), std::string::npos) << closed_.front().message();
  }

  // Handlers write these until the loop is gone.
  std::vector<Error> refused_;
  std::vector<Error> closed_;
  int controls_ = 0;
  EventLoop loop_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<Listener> listener_;
  std::shared_ptr<Connection> good_;
  std::vector<std::shared_ptr<Connection>> accepted_;
};

TEST_F(TcpHostile, Garbage) {
  auto peer = dial();
  peer.send("GET / HTTP/1.1\r\nHost: example\r\n\r\n");
  EXPECT_NE(refused(peer, ErrorCode::kCorrupt).find("no frame"), std::string::npos);
}

TEST_F(TcpHostile, AnotherProtocolVersion) {
  auto frame = wire::encode(good_hello(wire::Purpose::kControl));
  frame[4] = std::byte{0};
  auto peer = dial();
  peer.send(frame);
  EXPECT_NE(refused(peer, ErrorCode::kRefused).find("version 0"), std::string::npos);
}

TEST_F(TcpHostile, AnotherSchema) {
  auto hello = good_hello(wire::Purpose::kControl);
  ++hello.schema_hash;
  auto peer = dial();
  peer.send(wire::encode(hello));
  EXPECT_NE(refused(peer, ErrorCode::kRefused).find("schema"), std::string::npos);
}

TEST_F(TcpHostile, AnotherJob) {
  auto hello = good_hello(wire::Purpose::kControl);
  hello.job = "job-2";
  auto peer = dial();
  peer.send(wire::encode(hello));
  EXPECT_NE(refused(peer, ErrorCode::kRefused).find("job-2"), std::string::npos);
}

TEST_F(TcpHostile, AnotherFrameInsteadOfAHello) {
  auto peer = dial();
  peer.send(wire::encode(wire::Credit{{}, 5}));
  EXPECT_FALSE(refused(peer, ErrorCode::kCorrupt).empty());
}

TEST_F(TcpHostile, HalfAHello) {
  const auto frame = wire::encode(good_hello(wire::Purpose::kControl));
  auto peer = dial();
  peer.send(std::span(frame).first(frame.size() / 2));
  EXPECT_NE(refused(peer, ErrorCode::kTimeout).find("hello"), std::string::npos);
}

TEST_F(TcpHostile, Silence) {
  auto peer = dial();
  EXPECT_NE(refused(peer, ErrorCode::kTimeout).find("hello"), std::string::npos);
}

TEST_F(TcpHostile, GoneBeforeItsHello) {
  { auto peer = dial(); }
  ASSERT_TRUE(run_until([this] { return !refused_.empty(); }));
  EXPECT_EQ(refused_.front().code(), ErrorCode::kClosed);
}

TEST_F(TcpHostile, ABulkSocketAlone) {
  auto peer = dial();
  peer.send(wire::encode(good_hello(wire::Purpose::kBulk)));
  EXPECT_NE(refused(peer, ErrorCode::kRefused).find("control socket"), std::string::npos);
}

TEST_F(TcpHostile, AControlSocketAlone) {
  auto peer = dial();
  peer.send(wire::encode(good_hello(wire::Purpose::kControl)));
  ASSERT_TRUE(run_until([&] { return peer.readable(); }));
  peer.read();  // our hello
  EXPECT_NE(refused(peer, ErrorCode::kTimeout).find("bulk"), std::string::npos);
}

TEST_F(TcpHostile, GarbageAfterTheHandshake) {
  auto [control, bulk] = shake_hands();
  control.send("garbage, at least as long as a prefix");
  expect_closed(ErrorCode::kCorrupt, "no frame");
  ASSERT_TRUE(run_until([&, &peer = control] { return peer.readable(); }));
  EXPECT_FALSE(refusal_in(control.read()).empty()) << "the peer is told why";
}

TEST_F(TcpHostile, AFrameInTheWrongLane) {
  auto [control, bulk] = shake_hands();
  bulk.send(wire::encode(wire::Credit{{}, 5}));
  expect_closed(ErrorCode::kCorrupt, "bulk lane");
}

TEST_F(TcpHostile, APayloadThatNobodyReserved) {
  auto [control, bulk] = shake_hands();
  auto frame = wire::encode(wire::Chunk{{}, {}, 0, 4, {}}, 4);
  frame.resize(frame.size() + 4);
  bulk.send(frame);
  expect_closed(ErrorCode::kCorrupt, "nobody reserved");
}

TEST_F(TcpHostile, AChunkWithAWrongChecksum) {
  auto [control, bulk] = shake_hands();
  std::optional<Error> failed;
  accepted_[1]->receive_bulk({}, {}, Buffer::allocate(4),
                             [&](const Result<Buffer>& result) { failed = result.error(); });
  auto frame = wire::encode(wire::Chunk{{}, {}, 0, 4, 99}, 4);
  frame.resize(frame.size() + 4);
  bulk.send(frame);
  expect_closed(ErrorCode::kCorrupt, "checksum");
  EXPECT_EQ(failed.value().code(), ErrorCode::kCorrupt);
}

TEST_F(TcpHostile, AControlMessageWithAWrongChecksum) {
  auto [control, bulk] = shake_hands();
  auto frame = wire::encode(wire::Control{99}, 4);
  frame.resize(frame.size() + 4);
  control.send(frame);
  expect_closed(ErrorCode::kCorrupt, "checksum");
}

TEST_F(TcpHostile, TheSameBufferReservedTwice) {
  auto [control, bulk] = shake_hands();
  control.send(wire::encode(wire::Credit{{}, 5}));
  control.send(wire::encode(wire::Credit{{}, 5}));
  expect_closed(ErrorCode::kCorrupt, "two buffers");
}

TEST_F(TcpHostile, AResetInTheMiddleOfAPayloadNamesThePeer) {
  auto [control, bulk] = shake_hands();
  std::vector<Error> failed;
  accepted_[1]->receive_bulk({}, {}, Buffer::allocate(100), [&](const Result<Buffer>& result) {
    failed.push_back(result.error());
  });
  auto frame = wire::encode(wire::Chunk{{}, {}, 0, 100, {}}, 100);
  frame.resize(frame.size() + 50);
  bulk.send(frame);
  control.reset();
  bulk.reset();
  expect_closed(ErrorCode::kClosed, "");
  EXPECT_EQ(failed.size(), 1u);
}

TEST_F(TcpHostile, DiallingSomebodyWhoSaysNothing) {
  RawSocket silent;
  const auto endpoint = silent.listen();
  std::optional<Error> error;
  context_->connect(
      {endpoint}, who(2), kDeadline,
      [&](const Result<std::shared_ptr<Connection>>& result) { error = result.error(); });
  ASSERT_TRUE(run_until([&] { return error.has_value(); }));
  EXPECT_EQ(error->code(), ErrorCode::kTimeout);
  EXPECT_NE(error->message().find("says nothing"), std::string::npos) << error->message();
  EXPECT_NE(error->message().find(endpoint), std::string::npos);
}

TEST_F(TcpHostile, DiallingSomebodyWhoSpeaksGarbage) {
  RawSocket server;
  const auto endpoint = server.listen();
  std::optional<Error> error;
  context_->connect(
      {endpoint}, who(2), kPatience,
      [&](const Result<std::shared_ptr<Connection>>& result) { error = result.error(); });
  ASSERT_TRUE(run_until([&] { return server.readable(); }));
  auto peer = server.accept();
  peer.send("220 smtp.example ESMTP ready, how may I help");
  ASSERT_TRUE(run_until([&] { return error.has_value(); }));
  EXPECT_EQ(error->code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace holmes::transport
