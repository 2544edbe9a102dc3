// Goal: virtual time follows latency + bytes/bandwidth, faults do what they say, and a run is a
// function of its seed.
// Method: small networks whose times can be reckoned by hand.
#include "holmes/transport/sim.hpp"

#include <gtest/gtest.h>

#include "holmes/base/limits.hpp"

namespace holmes::transport {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Duration kLatency = microseconds(100);
constexpr double kGbitS = 8.0;  // one byte a nanosecond

Identity who(std::uint32_t host) {
  return {"job", HostId(host), NicId(0), Epoch(1)};
}

BulkTag tag(std::uint32_t number) {
  BulkTag tag;
  tag.node = number;
  return tag;
}

/// Hosts 0..n-1 with one NIC each; every host listens, and links are made on demand.
class Hosts {
 public:
  explicit Hosts(std::uint32_t count, std::uint64_t seed = 1, Duration jitter = {})
      : loop(seed), network(std::make_unique<SimNetwork>(loop, seed)) {
    network->add_fabric("ib", kGbitS, kLatency, jitter);
    accepted.resize(count);
    for (std::uint32_t host = 0; host < count; ++host) {
      network->add_nic(name(host), "ib");
      strands.push_back(&loop.make_strand());
      contexts.push_back(network->make_context(name(host), *strands.back()));
      listeners.push_back(contexts.back()
                              ->listen({name(host)}, who(host),
                                       [this, host](std::shared_ptr<Connection> connection) {
                                         accepted[host].push_back(std::move(connection));
                                       },
                                       {})
                              .value());
    }
  }

  static std::string name(std::uint32_t host) { return "host-" + std::to_string(host) + "/ib0"; }

  Result<std::shared_ptr<Connection>> connect(std::uint32_t from, std::uint32_t to,
                                              Duration deadline = std::chrono::seconds(5)) {
    std::optional<Result<std::shared_ptr<Connection>>> result;
    contexts[from]->connect({name(to)}, who(from), deadline,
                            [&](Result<std::shared_ptr<Connection>> r) { result = std::move(r); });
    loop.run_until([&] { return result.has_value(); }, std::chrono::minutes(1));
    return result.value();
  }

  void run(Duration limit = std::chrono::minutes(1)) {
    loop.run_until([] { return false; }, limit);
  }

  SimLoop loop;
  std::unique_ptr<SimNetwork> network;
  std::vector<Executor*> strands;
  std::vector<std::unique_ptr<Context>> contexts;
  std::vector<std::unique_ptr<Listener>> listeners;
  std::vector<std::vector<std::shared_ptr<Connection>>> accepted;
};

/// Sends `bytes` over a link and notes when they arrive.
void transfer(Hosts& hosts, Connection& from, Connection& to, std::uint32_t number,
              std::size_t bytes, std::optional<TimePoint>& arrival) {
  to.receive_bulk(tag(number), {}, Buffer::allocate(bytes), [&](const Result<Buffer>& result) {
    if (result) arrival = hosts.loop.now();
  });
  from.send_bulk(tag(number), {}, Buffer::allocate(bytes), [](const Status&) {});
}

TEST(SimNetwork, ATransferTakesLatencyPlusBytesOverBandwidth) {
  Hosts hosts(2);
  const auto a = hosts.connect(0, 1).value();
  hosts.run();
  const auto begin = hosts.loop.now();
  std::optional<TimePoint> arrival;
  constexpr std::size_t kBytes = 4 * kMiB;
  transfer(hosts, *a, *hosts.accepted[1].at(0), 1, kBytes, arrival);
  hosts.run();
  ASSERT_TRUE(arrival.has_value());
  // The credit takes one latency, the payload another; heads of credit and chunks are extra.
  const auto expected = 2 * kLatency + transfer_time(kBytes, kGbitS);
  EXPECT_GE(*arrival - begin, expected);
  EXPECT_LE(*arrival - begin, expected + microseconds(5));
}

TEST(SimNetwork, OneNicSendsToTwoHostsInTwiceTheTime) {
  Hosts hosts(3);
  const auto to_1 = hosts.connect(0, 1).value();
  const auto to_2 = hosts.connect(0, 2).value();
  hosts.run();
  const auto begin = hosts.loop.now();
  std::optional<TimePoint> first;
  std::optional<TimePoint> second;
  constexpr std::size_t kBytes = 8 * kMiB;
  transfer(hosts, *to_1, *hosts.accepted[1].at(0), 1, kBytes, first);
  transfer(hosts, *to_2, *hosts.accepted[2].at(0), 1, kBytes, second);
  hosts.run();
  const auto last = std::max(first.value(), second.value()) - begin;
  EXPECT_GE(last, 2 * transfer_time(kBytes, kGbitS));
  EXPECT_LE(last, 2 * transfer_time(kBytes, kGbitS) + 3 * kLatency);
}

TEST(SimNetwork, OneNicReceivesFromTwoHostsInTwiceTheTime) {
  Hosts hosts(3);
  const auto from_0 = hosts.connect(0, 2).value();
  const auto from_1 = hosts.connect(1, 2).value();
  hosts.run();
  const auto begin = hosts.loop.now();
  std::optional<TimePoint> first;
  std::optional<TimePoint> second;
  constexpr std::size_t kBytes = 8 * kMiB;
  transfer(hosts, *from_0, *hosts.accepted[2].at(0), 1, kBytes, first);
  transfer(hosts, *from_1, *hosts.accepted[2].at(1), 1, kBytes, second);
  hosts.run();
  EXPECT_GE(std::max(first.value(), second.value()) - begin, 2 * transfer_time(kBytes, kGbitS));
}

TEST(SimNetwork, ASlowerNicSetsTheRate) {
  Hosts hosts(2);
  const auto a = hosts.connect(0, 1).value();
  hosts.run();
  hosts.network->set_rate(Hosts::name(1), kGbitS / 10);
  const auto begin = hosts.loop.now();
  std::optional<TimePoint> arrival;
  transfer(hosts, *a, *hosts.accepted[1].at(0), 1, kMiB, arrival);
  hosts.run();
  EXPECT_GE(arrival.value() - begin, transfer_time(kMiB, kGbitS / 10));
}

TEST(SimNetwork, ACutPathHoldsEverythingUntilItHeals) {
  Hosts hosts(2);
  const auto a = hosts.connect(0, 1).value();
  const auto b = hosts.accepted[1].at(0);
  std::vector<std::size_t> at_b;
  int at_a = 0;
  b->on_control([&](const Buffer& message) { at_b.push_back(message.size()); });
  a->on_control([&](const Buffer&) { ++at_a; });
  hosts.network->cut(Hosts::name(0), Hosts::name(1));
  std::optional<TimePoint> arrival;
  transfer(hosts, *a, *b, 1, kMiB, arrival);
  for (std::size_t i = 1; i <= 3; ++i) a->send_control(Buffer::allocate(i), [](const Status&) {});
  b->send_control(Buffer::allocate(1), [](const Status&) {});
  hosts.run();
  EXPECT_FALSE(arrival.has_value());
  EXPECT_TRUE(at_b.empty());
  EXPECT_EQ(at_a, 1) << "the other direction is open";
  hosts.network->heal(Hosts::name(0), Hosts::name(1));
  a->send_control(Buffer::allocate(4), [](const Status&) {});
  hosts.run();
  EXPECT_TRUE(arrival.has_value());
  EXPECT_EQ(at_b, (std::vector<std::size_t>{1, 2, 3, 4})) << "order survives the cut";
}

TEST(SimNetwork, DialingAcrossACutTimesOutOrWaitsForTheHeal) {
  Hosts hosts(2);
  hosts.network->cut_nic(Hosts::name(1));
  const auto late = hosts.connect(0, 1, milliseconds(500));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::kTimeout);
  hosts.loop.post_after(milliseconds(300), [&] { hosts.network->heal_nic(Hosts::name(1)); });
  EXPECT_TRUE(hosts.connect(0, 1));
}

TEST(SimNetwork, AResetEndsBothEnds) {
  Hosts hosts(2);
  const auto a = hosts.connect(0, 1).value();
  const auto b = hosts.accepted[1].at(0);
  std::vector<ErrorCode> ends;
  a->on_closed([&](const Error& error) { ends.push_back(error.code()); });
  b->on_closed([&](const Error& error) { ends.push_back(error.code()); });
  hosts.network->reset(Hosts::name(1), Hosts::name(0));
  hosts.run();
  EXPECT_EQ(ends, (std::vector<ErrorCode>{ErrorCode::kClosed, ErrorCode::kClosed}));
}

TEST(SimNetwork, AKilledHostEndsItsPeersConnectionsAndCompletesNothing) {
  Hosts hosts(2);
  const auto a = hosts.connect(0, 1).value();
  const auto b = hosts.accepted[1].at(0);
  std::optional<Error> end;
  bool dead_completed = false;
  a->on_closed([&](const Error& error) { end = error; });
  b->on_closed([&](const Error&) { dead_completed = true; });
  b->receive_bulk(tag(1), {}, Buffer::allocate(8),
                  [&](const Result<Buffer>&) { dead_completed = true; });
  hosts.network->kill_host("host-1");
  hosts.loop.retire(*hosts.strands[1]);
  hosts.run();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->code(), ErrorCode::kClosed);
  EXPECT_NE(end->message().find("host 1"), std::string::npos);
  EXPECT_FALSE(dead_completed);
  const auto again = hosts.connect(0, 1);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), ErrorCode::kUnavailable);
}

TEST(SimNetwork, ASilentDeathTellsNobody) {
  Hosts hosts(2);
  const auto a = hosts.connect(0, 1).value();
  bool ended = false;
  a->on_closed([&](const Error&) { ended = true; });
  hosts.network->kill_host("host-1", true);
  hosts.run();
  EXPECT_FALSE(ended);
  const auto again = hosts.connect(0, 1, milliseconds(500));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), ErrorCode::kTimeout);
}

TEST(SimNetwork, FabricsAreApart) {
  Hosts hosts(1);
  hosts.network->add_fabric("roce", 1.0, kLatency);
  hosts.network->add_nic("host-9/roce0", "roce");
  const auto context = hosts.network->make_context("host-9/roce0", hosts.loop);
  std::optional<Error> error;
  context->connect({Hosts::name(0)}, who(9), milliseconds(10),
                   [&](const Result<std::shared_ptr<Connection>>& r) { error = r.error(); });
  EXPECT_FALSE(error.has_value());
  hosts.run();
  EXPECT_EQ(error.value().code(), ErrorCode::kUnavailable);
}

TEST(SimNetwork, ContextsNetworksAndLinksMayGoInAnyOrder) {
  Hosts hosts(2);
  auto a = hosts.connect(0, 1).value();
  int completions = 0;
  a->send_bulk(tag(1), {}, Buffer::allocate(8), [&](const Status&) { ++completions; });
  hosts.contexts[0]->connect({Hosts::name(1)}, who(0), milliseconds(50),
                             [&](const Result<std::shared_ptr<Connection>>&) { ++completions; });
  hosts.contexts.clear();
  hosts.network.reset();
  hosts.run();
  EXPECT_EQ(completions, 1) << "the dial ends with its context";
  a.reset();
  hosts.run();
  EXPECT_EQ(completions, 2);
}

/// The trace of a run with traffic in all directions, delays and a cut, under one seed.
std::uint64_t trace_of(std::uint64_t seed) {
  Hosts hosts(4, seed, microseconds(50));
  std::vector<std::shared_ptr<Connection>> links;
  for (std::uint32_t from = 0; from < 4; ++from)
    for (std::uint32_t to = 0; to < from; ++to) links.push_back(hosts.connect(from, to).value());
  std::size_t received = 0;
  for (const auto& link : links) link->on_control([&](const Buffer&) { ++received; });
  for (auto& side : hosts.accepted)
    for (auto& link : side)
      link->on_control([&hosts, link = link.get()](const Buffer& message) {
        if (hosts.loop.now() < TimePoint(milliseconds(20)))
          link->send_control(message, [](Status) {});
      });
  for (int i = 0; i < 20; ++i)
    for (const auto& link : links)
      link->send_control(Buffer::allocate(static_cast<std::size_t>(64 + i)), [](const Status&) {});
  hosts.network->cut(Hosts::name(0), Hosts::name(1));
  hosts.loop.post_after(milliseconds(5), [&] { hosts.network->heal_all(); });
  hosts.run();
  EXPECT_GT(received, 0u);
  return hosts.loop.trace_hash();
}

TEST(SimLoop, TheSameSeedGivesTheSameTrace) {
  EXPECT_EQ(trace_of(5), trace_of(5));
  EXPECT_NE(trace_of(5), trace_of(6));
}

TEST(SimLoop, StrandsInterleaveBySeedAndKeepTheirOwnOrder) {
  const auto order_of = [](std::uint64_t seed) {
    SimLoop loop(seed);
    std::string order;
    std::vector<Executor*> strands = {&loop.make_strand(), &loop.make_strand()};
    for (int i = 0; i < 8; ++i) {
      strands[0]->post([&order, i] { order += static_cast<char>('a' + i); });
      strands[1]->post([&order, i] { order += static_cast<char>('A' + i); });
    }
    while (loop.run_ready_one()) {
    }
    return order;
  };
  const auto order = order_of(1);
  std::string lower;
  std::string upper;
  for (const char c : order) (c >= 'a' ? lower : upper) += c;
  EXPECT_EQ(lower, "abcdefgh");
  EXPECT_EQ(upper, "ABCDEFGH");
  EXPECT_EQ(order, order_of(1));
  EXPECT_NE(order, order_of(2));
}

TEST(SimLoop, TimersFireInOrderOfTimeThenOfSetting) {
  SimLoop loop(1);
  std::string order;
  loop.post_after(milliseconds(2), [&] { order += 'c'; });
  loop.post_after(milliseconds(1), [&] { order += 'a'; });
  loop.post_after(milliseconds(1), [&] { order += 'b'; });
  const auto cancelled = loop.post_after(milliseconds(1), [&] { order += 'x'; });
  loop.cancel(cancelled);
  EXPECT_EQ(loop.next_event(), TimePoint(milliseconds(1)));
  EXPECT_FALSE(loop.idle());
  loop.run_until([] { return false; }, std::chrono::seconds(1));
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(loop.now(), TimePoint(milliseconds(2)));
  EXPECT_TRUE(loop.idle());
}

TEST(SimLoop, ARetiredStrandDropsItsTasksAndTimers) {
  SimLoop loop(1);
  auto& strand = loop.make_strand();
  bool ran = false;
  strand.post([&] { ran = true; });
  strand.post_after(milliseconds(1), [&] { ran = true; });
  loop.retire(strand);
  strand.post([&] { ran = true; });
  EXPECT_TRUE(loop.idle());
  loop.run_until([] { return false; }, std::chrono::seconds(1));
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace holmes::transport
