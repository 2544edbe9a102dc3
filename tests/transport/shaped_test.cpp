// Goal: the decorator gives a NIC its rate in each direction and its latency, and lets control pass
// ahead of bulk.
// Method: a simulated fabric that is far faster than the shape, so that virtual times show the
// shape alone.
#include "holmes/transport/shaped.hpp"

#include <gtest/gtest.h>

#include "holmes/transport/sim.hpp"

namespace holmes::transport {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr double kGbitS = 0.8;  // ten nanoseconds a byte
constexpr Duration kLatency = milliseconds(2);
/// The fabric's own time for what these tests send.
constexpr Duration kSlack = microseconds(300);

Identity who(std::uint32_t host) {
  return {"job", HostId(host), NicId(0), Epoch(1)};
}

BulkTag tag(std::uint32_t number) {
  BulkTag tag;
  tag.generation = Generation(1);
  tag.node = number;
  return tag;
}

class Shaped : public ::testing::Test {
 protected:
  Shaped() {
    network_.add_fabric("fast", 400.0, microseconds(1));
    for (std::uint32_t host = 0; host < 3; ++host) {
      const auto name = "host-" + std::to_string(host) + "/nic";
      network_.add_nic(name, "fast");
      contexts_.push_back(
          make_shaped_context(network_.make_context(name, loop_), {kGbitS, kLatency}));
      listeners_.push_back(contexts_.back()
                               ->listen({name}, who(host),
                                        [this](std::shared_ptr<Connection> connection) {
                                          accepted_.push_back(std::move(connection));
                                        },
                                        {})
                               .value());
    }
  }

  /// The dialling and the listening end.
  std::pair<std::shared_ptr<Connection>, std::shared_ptr<Connection>> connect(std::uint32_t from,
                                                                              std::uint32_t to) {
    std::shared_ptr<Connection> dialled;
    contexts_[from]->connect({"host-" + std::to_string(to) + "/nic"}, who(from),
                             std::chrono::seconds(1),
                             [&](Result<std::shared_ptr<Connection>> r) { dialled = *r; });
    const auto before = accepted_.size();
    EXPECT_TRUE(run_until([&] { return dialled && accepted_.size() > before; }));
    return {dialled, accepted_.back()};
  }

  void transfer(const std::pair<std::shared_ptr<Connection>, std::shared_ptr<Connection>>& link,
                std::uint32_t number, std::size_t bytes) {
    link.second->receive_bulk(tag(number), {}, Buffer::allocate(bytes),
                              [this](const Result<Buffer>& result) {
                                EXPECT_TRUE(result);
                                arrivals_.push_back(loop_.now() - begin_);
                              });
    link.first->send_bulk(tag(number), {}, Buffer::allocate(bytes), [](const Status&) {});
  }

  bool run_until(const std::function<bool()>& done) {
    return loop_.run_until(done, std::chrono::minutes(1));
  }
  void expect_near(Duration actual, Duration expected) {
    EXPECT_GE(actual, expected);
    EXPECT_LE(actual, expected + kSlack);
  }

  SimLoop loop_{1};
  SimNetwork network_{loop_, 1};
  std::vector<std::unique_ptr<ShapedContext>> contexts_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<std::shared_ptr<Connection>> accepted_;
  TimePoint begin_{};
  std::vector<Duration> arrivals_;
};

TEST_F(Shaped, APayloadTakesItsBytesAtTheRateAndTheLatency) {
  const auto link = connect(0, 1);
  begin_ = loop_.now();
  transfer(link, 1, 1'000'000);
  ASSERT_TRUE(run_until([&] { return arrivals_.size() == 1; }));
  expect_near(arrivals_[0], milliseconds(10) + kLatency);
}

TEST_F(Shaped, AllConnectionsOfANicShareItsRate) {
  const auto first = connect(0, 1);
  const auto second = connect(0, 2);
  begin_ = loop_.now();
  transfer(first, 1, 1'000'000);
  transfer(second, 1, 1'000'000);
  ASSERT_TRUE(run_until([&] { return arrivals_.size() == 2; }));
  expect_near(arrivals_[0], milliseconds(10) + kLatency);
  expect_near(arrivals_[1], milliseconds(20) + kLatency);
}

TEST_F(Shaped, AReceiverOfTwoTakesTwiceTheTime) {
  const auto first = connect(0, 2);
  const auto second = connect(1, 2);
  begin_ = loop_.now();
  transfer(first, 1, 1'000'000);
  transfer(second, 1, 1'000'000);
  ASSERT_TRUE(run_until([&] { return arrivals_.size() == 2; }));
  expect_near(arrivals_[0], milliseconds(10) + kLatency);
  expect_near(arrivals_[1], milliseconds(20) + kLatency);
}

TEST_F(Shaped, DirectionsDoNotShareTheRate) {
  const auto link = connect(0, 1);
  begin_ = loop_.now();
  transfer(link, 1, 1'000'000);
  transfer({link.second, link.first}, 2, 1'000'000);
  ASSERT_TRUE(run_until([&] { return arrivals_.size() == 2; }));
  expect_near(arrivals_[1], milliseconds(10) + kLatency);
}

TEST_F(Shaped, ControlPassesAheadOfBulkAndInOrder) {
  const auto link = connect(0, 1);
  std::vector<std::size_t> controls;
  Duration last{};
  link.second->on_control([&](const Buffer& message) {
    controls.push_back(message.size());
    last = loop_.now() - begin_;
  });
  begin_ = loop_.now();
  transfer(link, 1, 1'000'000);
  for (const std::size_t bytes : {std::size_t{1000}, std::size_t{1}, std::size_t{10}})
    link.first->send_control(Buffer::allocate(bytes), [](const Status&) {});
  ASSERT_TRUE(run_until([&] { return controls.size() == 3; }));
  EXPECT_EQ(controls, (std::vector<std::size_t>{1000, 1, 10}));
  expect_near(last, kLatency);
  EXPECT_TRUE(arrivals_.empty());
  ASSERT_TRUE(run_until([&] { return arrivals_.size() == 1; }));
  EXPECT_GE(arrivals_[0], milliseconds(10) + microseconds(10) + kLatency) << "control is not free";
}

TEST_F(Shaped, AChangedShapeHoldsForWhatFollows) {
  const auto link = connect(0, 1);
  contexts_[0]->set_shape({kGbitS / 10, kLatency});
  begin_ = loop_.now();
  transfer(link, 1, 1'000'000);
  ASSERT_TRUE(run_until([&] { return arrivals_.size() == 1; }));
  expect_near(arrivals_[0], milliseconds(100) + kLatency);
}

TEST_F(Shaped, SupersedeEndsWhatWaitsAndWhatIsHeld) {
  const auto link = connect(0, 1);
  std::vector<ErrorCode> ends;
  const auto note_send = [&](const Status& status) {
    ends.push_back(status ? ErrorCode::kInternal : status.error().code());
  };
  link.first->send_bulk(tag(1), {}, Buffer::allocate(1'000'000), note_send);
  link.first->send_bulk(tag(2), {}, Buffer::allocate(1'000'000), note_send);
  std::optional<Error> held;
  link.first->receive_bulk(tag(3), {}, Buffer::allocate(10),
                           [&](const Result<Buffer>& result) { held = result.error(); });
  link.second->send_bulk(tag(3), {}, Buffer::allocate(10), [](const Status&) {});
  loop_.run_until([] { return false; }, milliseconds(1));  // there, but held for its latency
  EXPECT_FALSE(held.has_value());
  link.first->supersede(Generation(2));
  ASSERT_TRUE(run_until([&] { return ends.size() == 2 && held.has_value(); }));
  EXPECT_EQ(ends, (std::vector<ErrorCode>{ErrorCode::kSuperseded, ErrorCode::kSuperseded}));
  EXPECT_EQ(held->code(), ErrorCode::kSuperseded);
}

TEST_F(Shaped, DroppingAConnectionCompletesWhatItHas) {
  auto link = connect(0, 1);
  int completions = 0;
  link.first->send_bulk(tag(1), {}, Buffer::allocate(1'000'000),
                        [&](const Status&) { ++completions; });
  link.first->receive_bulk(tag(2), {}, Buffer::allocate(10),
                           [&](const Result<Buffer>&) { ++completions; });
  link.first->on_closed([&](const Error&) {
    EXPECT_EQ(completions, 2);
    ++completions;
  });
  contexts_[0].reset();
  link.first.reset();
  EXPECT_EQ(completions, 0);
  ASSERT_TRUE(run_until([&] { return completions == 3; }));
}

}  // namespace
}  // namespace holmes::transport
