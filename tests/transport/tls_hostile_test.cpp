// Goal: only who proves to be a host of this job gets in, and only as itself: no certificate,
// another authority's, an expired one, another host's, an old TLS, plain words, half a handshake
// and replayed bytes are refused with a reason, within the deadline, and disturb nobody.
// Method: clients made of OpenSSL and of plain sockets, and our own with wrong credentials, against
// a listener that serves a good pair at the same time.
#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holmes/transport/tcp.hpp"
#include "tls_peer.hpp"

namespace holmes::transport {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr Duration kDeadline = milliseconds(300);
constexpr Duration kPatience = std::chrono::seconds(20);
const std::vector<std::string> kHosts{"a0", "a1", "b0"};

Identity who(std::uint32_t host) {
  return {"job-1", HostId(host), NicId(0), Epoch(1)};
}

const Authority& authority() {
  static const Authority kMade = Authority::make("job-1").value();
  return kMade;
}

class TlsHostile : public testing::Test {
 protected:
  explicit TlsHostile(Duration handshake_deadline = kDeadline)
      : context_(context(issue("a1"), handshake_deadline)), good_context_(context(issue("a0"))) {
    listener_ = listen(*context_);
    good_context_->connect(
        listener_->endpoint(), who(0), kPatience,
        [this](Result<std::shared_ptr<Connection>> result) { good_ = result ? *result : nullptr; });
    EXPECT_TRUE(run_until([this] { return good_ && accepted_.size() == 1; }));
  }
  ~TlsHostile() override {
    // Nobody else was disturbed, and nobody else got in.
    good_->send_control(Buffer::allocate(10), [](const Status&) {});
    EXPECT_TRUE(run_until([this] { return controls_ == 1; }));
    EXPECT_EQ(accepted_.size(), accepted_count_);
  }

  static Credentials issue(const std::string& host, const Validity& validity = {}) {
    return authority().issue(host, validity).value();
  }
  std::unique_ptr<Context> context(const Credentials& credentials, Duration deadline = kDeadline) {
    TcpOptions options{"127.0.0.1", false, deadline, Logger()};
    if (!credentials.empty()) options.tls = Tls::make(credentials).value();
    options.host_names = kHosts;
    return make_tcp_context(loop_, options);
  }
  std::unique_ptr<Listener> listen(Context& at, const Identity& self = who(1)) {
    auto listener = at.listen(
        {"127.0.0.1:0"}, self,
        [this](std::shared_ptr<Connection> connection) {
          connection->on_closed([this](const Error& error) { closed_.push_back(error); });
          connection->on_control([this](const Buffer&) { ++controls_; });
          accepted_.push_back(std::move(connection));
        },
        [this](const Error& error) { refused_.push_back(error); });
    return std::move(listener).value();
  }

  bool run_until(const std::function<bool()>& done) { return loop_.run_until(done, kPatience); }
  std::string endpoint() const { return listener_->endpoint().address; }

  /// What becomes of a dial to `at` by a context of ours.
  Error dial_error(Context& from, const std::string& at, const Identity& self) {
    std::optional<Result<std::shared_ptr<Connection>>> result;
    from.connect({at}, self, kPatience,
                 [&](Result<std::shared_ptr<Connection>> made) { result = std::move(made); });
    EXPECT_TRUE(run_until([&] { return result.has_value(); }));
    EXPECT_FALSE(*result) << "it was let in";
    return *result ? Error(ErrorCode::kClosed, "") : result->error();
  }
  void expect_refused(ErrorCode code, const std::string& part) {
    ASSERT_TRUE(run_until([this] { return !refused_.empty(); }));
    EXPECT_EQ(refused_.size(), 1u);
    EXPECT_EQ(refused_.front().code(), code) << refused_.front().message();
    EXPECT_THAT(refused_.front().message(), HasSubstr(part));
    EXPECT_THAT(refused_.front().message(), HasSubstr("127.0.0.1:")) << "names who";
  }
  /// Shakes hands as far as it goes and waits until the peer was told something.
  void finish(TlsPeer& peer) {
    EXPECT_TRUE(run_until([&] { return peer.shaken(); }));
    EXPECT_TRUE(run_until([&] { return peer.socket().readable() || !peer.alert.empty(); }));
    peer.read();
  }

  std::vector<Error> refused_;
  std::vector<Error> closed_;
  int controls_ = 0;
  std::size_t accepted_count_ = 1;
  EventLoop loop_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<Context> good_context_;
  std::unique_ptr<Listener> listener_;
  std::shared_ptr<Connection> good_;
  std::vector<std::shared_ptr<Connection>> accepted_;
};

TEST_F(TlsHostile, NoCertificate) {
  TlsPeer peer(endpoint(), {});
  finish(peer);
  expect_refused(ErrorCode::kRefused, "shows no certificate");
  EXPECT_THAT(peer.alert, HasSubstr("certificate required"));
}

TEST_F(TlsHostile, ACertificateOfAnotherAuthority) {
  // Of the same name and for the same host: only the signature differs.
  TlsPeer peer(endpoint(), Authority::make("job-1").value().issue("a0").value());
  finish(peer);
  expect_refused(ErrorCode::kRefused, "not of this job's authority");
  EXPECT_FALSE(peer.alert.empty());
}

TEST_F(TlsHostile, AJobOfOursWithAnotherAuthorityIsToldWhy) {
  const auto other = context(Authority::make("job-1").value().issue("a0").value());
  const auto error = dial_error(*other, endpoint(), who(0));
  EXPECT_EQ(error.code(), ErrorCode::kRefused);
  EXPECT_THAT(error.message(), HasSubstr("not of this job's authority"));
  EXPECT_THAT(error.message(), HasSubstr(endpoint()));
  expect_refused(ErrorCode::kRefused, "");
}

TEST_F(TlsHostile, AnExpiredCertificate) {
  const auto old = context(issue("a0", {-hours(3), -hours(1)}));
  const auto error = dial_error(*old, endpoint(), who(0));
  EXPECT_EQ(error.code(), ErrorCode::kRefused) << error.message();
  EXPECT_THAT(error.message(), HasSubstr("expired"));
  expect_refused(ErrorCode::kRefused, "its certificate has expired");
}

TEST_F(TlsHostile, ACertificateOfTheFuture) {
  const auto early = context(issue("a0", {hours(1), hours(2)}));
  const auto error = dial_error(*early, endpoint(), who(0));
  EXPECT_EQ(error.code(), ErrorCode::kRefused) << error.message();
  expect_refused(ErrorCode::kRefused, "not valid yet");
}

TEST_F(TlsHostile, AHostThatPosesAsAnother) {
  const auto b0 = context(issue("b0"));
  const auto error = dial_error(*b0, endpoint(), who(0));
  EXPECT_EQ(error.code(), ErrorCode::kRefused);
  EXPECT_THAT(error.message(), HasSubstr("it says it is host a0 of job job-1, but its certificate "
                                         "is that of host b0 of job job-1"));
  expect_refused(ErrorCode::kRefused, "is that of host b0");
}

TEST_F(TlsHostile, AHostThatPosesByNameOrAsTheCoordinator) {
  const auto b0 = context(issue("b0"));
  constexpr std::uint32_t kNone = 0xffffffff;
  auto claim = who(kNone);
  claim.host_name = "a0";
  EXPECT_THAT(dial_error(*b0, endpoint(), claim).message(), HasSubstr("it says it is host a0"));
  claim.host_name = "";
  EXPECT_THAT(dial_error(*b0, endpoint(), claim).message(),
              HasSubstr("it says it is the coordinator"));
  EXPECT_THAT(dial_error(*b0, endpoint(), who(7)).message(), HasSubstr("the job has 3 hosts"));
  claim = who(0);
  claim.host_name = "b0";
  EXPECT_THAT(dial_error(*b0, endpoint(), claim).message(),
              HasSubstr("with the number of host a0"));
}

TEST_F(TlsHostile, ACertificateOfTheSameHostInAnotherJob) {
  // The authority is the same, as with credentials that a user made once for several jobs.
  auto other = who(0);
  other.job = "job-2";
  EXPECT_THAT(dial_error(*good_context_, endpoint(), other).message(), HasSubstr("job-2"));
}

TEST_F(TlsHostile, AListenerThatPosesAsAnother) {
  const auto b0 = context(issue("b0"));
  const auto imposter = listen(*b0, who(1));
  const auto error = dial_error(*good_context_, imposter->endpoint().address, who(0));
  EXPECT_EQ(error.code(), ErrorCode::kRefused);
  EXPECT_THAT(error.message(), HasSubstr("it says it is host a1"));
  EXPECT_THAT(error.message(), HasSubstr("is that of host b0"));
}

TEST_F(TlsHostile, AnOldVersion) {
  TlsPeer peer(endpoint(), issue("a0"), TLS1_2_VERSION);
  finish(peer);
  expect_refused(ErrorCode::kRefused, "does not speak TLS 1.3");
  EXPECT_FALSE(peer.is_connected());
}

TEST_F(TlsHostile, Garbage) {
  auto peer = RawSocket::dial(endpoint());
  peer.send("GET / HTTP/1.1\r\nHost: example\r\n\r\n");
  expect_refused(ErrorCode::kRefused, "does not speak TLS");
  ASSERT_TRUE(run_until([&] { return peer.readable(); }));
  EXPECT_THAT(refusal_in(peer.read()), HasSubstr("connections are encrypted"));
}

TEST_F(TlsHostile, GarbageThatLooksLikeTls) {
  auto peer = RawSocket::dial(endpoint());
  peer.send(std::string("\x16\x03\x01\x00\x05hello", 10));
  expect_refused(ErrorCode::kCorrupt, "its TLS is broken");
}

TEST_F(TlsHostile, APlainPeerOfOursIsToldWhy) {
  const auto plain = context({});
  const auto error = dial_error(*plain, endpoint(), who(0));
  EXPECT_EQ(error.code(), ErrorCode::kRefused);
  EXPECT_THAT(error.message(), HasSubstr("this job's connections are encrypted"));
  expect_refused(ErrorCode::kRefused, "does not speak TLS");
}

TEST_F(TlsHostile, APlainListenerTellsWhoSpeaksTls) {
  const auto plain = context({});
  const auto listener = listen(*plain);
  const auto error = dial_error(*good_context_, listener->endpoint().address, who(0));
  EXPECT_EQ(error.code(), ErrorCode::kRefused);
  EXPECT_THAT(error.message(), HasSubstr("does not speak TLS"));
  expect_refused(ErrorCode::kRefused, "it speaks TLS, but this job's connections are plain");
}

TEST_F(TlsHostile, HalfAHandshake) {
  RawSocket recorder;
  TlsPeer model(recorder.listen(), {});
  model.shaken();
  ASSERT_GT(model.sent.size(), 100u) << "the first flight of a client";
  auto peer = RawSocket::dial(endpoint());
  peer.send(std::span(model.sent).first(model.sent.size() / 2));
  expect_refused(ErrorCode::kTimeout, "no complete TLS handshake and hello within 300 ms");
}

TEST_F(TlsHostile, AHandshakeWithoutAHello) {
  TlsPeer peer(endpoint(), issue("b0"));
  ASSERT_TRUE(run_until([&] { return peer.shaken(); }));
  ASSERT_TRUE(peer.is_connected());
  expect_refused(ErrorCode::kTimeout, "no complete hello within 300 ms");
  ASSERT_TRUE(run_until([&] { return peer.socket().readable(); }));
  EXPECT_THAT(refusal_in(peer.read()), HasSubstr("no complete hello")) << "told under TLS";
}

TEST_F(TlsHostile, ReplayedBytes) {
  // All that a good host sent, hello included, is sent again by who has recorded it.
  TlsPeer host(endpoint(), issue("b0"));
  ASSERT_TRUE(run_until([&] { return host.shaken(); }));
  host.send(wire::encode(wire::Hello{wire::schema_hash(), "job-1", HostId(2), NicId(2), Epoch(1),
                                     wire::Purpose::kControl, 1234}));
  ASSERT_TRUE(run_until([&] { return host.socket().readable(); }));
  wire::FrameDecoder decoder;
  ASSERT_TRUE(decoder.consume(host.read()));
  ASSERT_EQ(decoder.head().type, wire::FrameType::kHello) << "the original is welcome";
  auto peer = RawSocket::dial(endpoint());
  peer.send(host.sent);
  expect_refused(ErrorCode::kCorrupt, "its TLS is broken");
}

TEST_F(TlsHostile, BytesThatSomebodyPutIntoAConnection) {
  TlsPeer control(endpoint(), issue("b0"));
  TlsPeer bulk(endpoint(), issue("b0"));
  wire::Hello hello{wire::schema_hash(),     "job-1", HostId(2), NicId(2), Epoch(1),
                    wire::Purpose::kControl, 1234};
  ASSERT_TRUE(run_until([&] { return control.shaken() && bulk.shaken(); }));
  control.send(wire::encode(hello));
  ASSERT_TRUE(run_until([&] { return control.socket().readable(); }));
  hello.purpose = wire::Purpose::kBulk;
  bulk.send(wire::encode(hello));
  ASSERT_TRUE(run_until([&] { return accepted_.size() == 2; }));
  accepted_count_ = 2;
  control.socket().send(std::string("\x17\x03\x03\x00\x20", 5) + std::string(32, 'x'));
  ASSERT_TRUE(run_until([&] { return closed_.size() == 1; }));
  EXPECT_EQ(closed_.front().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(closed_.front().message(), HasSubstr("its TLS is broken"));
}

class TlsCrowd : public TlsHostile {
 protected:
  TlsCrowd() : TlsHostile(kPatience) {}
};

TEST_F(TlsCrowd, AThousandHalfOpenConnectionsKeepNobodyOut) {
  constexpr std::size_t kStrangers = 1100;  // more than may say hello at one time
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t wanted = 3 * kStrangers;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(wanted, limit.rlim_max));
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < wanted) GTEST_SKIP() << "too few descriptors for so many connections";
  std::vector<RawSocket> strangers;
  const auto crowd = [&] {
    for (std::size_t i = 0; i < 50 && strangers.size() < kStrangers; ++i) {
      strangers.push_back(RawSocket::dial(endpoint()));
      strangers.back().send(std::string("\x16\x03\x01\x02", 4));
    }
    return strangers.size() == kStrangers;
  };
  while (!crowd()) loop_.run_until([] { return false; }, milliseconds(5));
  // The newest came when all places were taken; those that have been there long make way.
  ASSERT_TRUE(run_until([this] { return !refused_.empty(); }));
  EXPECT_EQ(refused_.front().code(), ErrorCode::kOutOfResources);
  const auto before = loop_.clock().now();
  ASSERT_TRUE(run_until([&] { return loop_.clock().now() - before > milliseconds(600); }));
  const auto b0 = context(issue("b0"));
  std::shared_ptr<Connection> made;
  b0->connect({endpoint()}, who(2), kPatience, [&](Result<std::shared_ptr<Connection>> result) {
    made = result ? *result : nullptr;
  });
  ASSERT_TRUE(run_until([&] { return made != nullptr && accepted_.size() == 2; }));
  accepted_count_ = 2;
  EXPECT_EQ(made->peer().host, HostId(1));
}

// --- credentials ---

TEST(TlsCredentials, WhatDoesNotBelongTogetherIsRefused) {
  const auto own = authority().issue("a0").value();
  auto mixed = own;
  mixed.key = authority().issue("a0").value().key;
  EXPECT_THAT(Tls::make(mixed).error().message(), HasSubstr("do not belong together"));
  for (auto Credentials::*part :
       {&Credentials::authority, &Credentials::certificate, &Credentials::key}) {
    auto broken = own;
    broken.*part = "-----BEGIN NOTHING-----\n";
    const auto made = Tls::make(broken);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(made.error().message(), HasSubstr("cannot be read"));
    EXPECT_THAT(made.error().message(), testing::Not(HasSubstr("PRIVATE")));
  }
  auto no_host = own;
  no_host.certificate = own.authority;
  EXPECT_FALSE(Tls::make(no_host));
}

TEST(TlsCredentials, JobsHaveNamesOfTheirOwn) {
  const auto one = unique_job_name("demo").value();
  EXPECT_THAT(one, testing::StartsWith("demo-"));
  EXPECT_NE(one, unique_job_name("demo").value());
}

}  // namespace
}  // namespace holmes::transport
