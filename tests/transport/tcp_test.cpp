// Goal: the event loop keeps an executor's promises, addresses fail readably, and loops, contexts
// and connections may be destroyed in any order with operations pending.
// Method: real sockets on loopback; a loop with a thread where threads are the point.
#include "holmes/transport/tcp.hpp"

#include <atomic>
#include <future>
#include <thread>

#include <gtest/gtest.h>

namespace holmes::transport {
namespace {

using std::chrono::milliseconds;

constexpr Duration kPatience = std::chrono::seconds(20);

Identity who(std::uint32_t host) {
  return {"job", HostId(host), NicId(0), Epoch(1)};
}

/// Two ends of a connection on one loop that the test drives.
struct Pair {
  explicit Pair(EventLoop& loop)
      : context(make_tcp_context(loop, {"127.0.0.1", false, kPatience, Logger()})) {
    auto listening = context->listen(
        {"127.0.0.1:0"}, who(1), [this](std::shared_ptr<Connection> c) { b = std::move(c); }, {});
    listener = std::move(listening).value();
    context->connect(listener->endpoint(), who(0), kPatience,
                     [this](Result<std::shared_ptr<Connection>> result) { a = *result; });
  }
  bool ready() const { return a && b; }

  std::unique_ptr<Context> context;
  std::unique_ptr<Listener> listener;
  std::shared_ptr<Connection> a;
  std::shared_ptr<Connection> b;
};

TEST(EventLoop, RunsTasksOfAllThreadsInTheOrderOfEach) {
  EventLoop loop;
  loop.start();
  std::vector<int> seen[2];
  std::atomic<int> left = 2000;
  const auto feed = [&](int lane) {
    for (int i = 0; i < 1000; ++i)
      loop.post([&, lane, i] {
        EXPECT_TRUE(loop.on_loop_thread());
        seen[lane].push_back(i);
        --left;
      });
  };
  std::thread first([&] { feed(0); });
  std::thread second([&] { feed(1); });
  first.join();
  second.join();
  std::promise<void> last;
  loop.post([&] { last.set_value(); });
  ASSERT_EQ(last.get_future().wait_for(kPatience), std::future_status::ready);
  loop.stop();
  loop.join();
  EXPECT_EQ(left, 0);
  for (const auto& lane : seen) EXPECT_TRUE(std::is_sorted(lane.begin(), lane.end()));
}

TEST(EventLoop, TimersFireOnceUnlessCancelled) {
  EventLoop loop;
  std::string order;
  loop.post_after(milliseconds(20), [&] { order += 'b'; });
  const auto cancelled = loop.post_after(milliseconds(1), [&] { order += 'x'; });
  loop.post([&] {
    loop.cancel(cancelled);
    loop.cancel(cancelled);
    loop.cancel(987654);
    loop.post_after(milliseconds(2), [&] { order += 'a'; });
  });
  ASSERT_TRUE(loop.run_until([&] { return order.size() == 2; }, kPatience));
  EXPECT_EQ(order, "ab");
}

TEST(EventLoop, NeverRunsATaskInsidePost) {
  EventLoop loop;
  bool inside = true;
  bool ran = false;
  loop.post([&] {
    loop.post([&] {
      EXPECT_FALSE(inside);
      ran = true;
    });
    inside = false;
  });
  ASSERT_TRUE(loop.run_until([&] { return ran; }, kPatience));
}

TEST(EventLoop, StopCompletesWhatIsPendingAndDropsWhatComesLater) {
  auto loop = std::make_unique<EventLoop>();
  std::vector<ErrorCode> ends;
  std::shared_ptr<Connection> survivor;
  {
    Pair pair(*loop);
    ASSERT_TRUE(loop->run_until([&] { return pair.ready(); }, kPatience));
    survivor = pair.a;
    // A handler that owns its connection must not keep it alive for ever.
    survivor->on_closed([&, keep = survivor](const Error& error) { ends.push_back(error.code()); });
    survivor->receive_bulk({}, {}, Buffer::allocate(4), [&](const Result<Buffer>& result) {
      ends.push_back(result.error().code());
    });
    loop->post_after(std::chrono::hours(1), [keep = survivor] {});
  }
  loop.reset();
  EXPECT_EQ(ends, (std::vector<ErrorCode>{ErrorCode::kClosed, ErrorCode::kClosed}));
  bool late = false;
  survivor->send_control(Buffer::allocate(4), [&](const Status&) { late = true; });
  survivor->close();
  survivor.reset();
  EXPECT_FALSE(late) << "there is no loop that could run it";
}

TEST(EventLoop, AThreadedLoopStopsWithOperationsPending) {
  EventLoop loop;
  std::unique_ptr<Pair> pair;
  std::atomic<int> completions = 0;
  std::promise<void> pending;
  loop.start();
  loop.post([&] { pair = std::make_unique<Pair>(loop); });
  std::function<void()> wait_for_pair = [&] {
    if (!pair || !pair->ready()) {
      loop.post_after(milliseconds(1), wait_for_pair);
      return;
    }
    pair->a->send_bulk({}, {}, Buffer::allocate(4), [&](const Status&) { ++completions; });
    pair->b->on_closed([&](const Error&) { ++completions; });
    pending.set_value();
  };
  loop.post(wait_for_pair);
  ASSERT_EQ(pending.get_future().wait_for(kPatience), std::future_status::ready);
  loop.stop();
  loop.join();
  EXPECT_EQ(completions, 2);
}

TEST(TcpContext, ConnectionsOutliveTheirContextAndDialsEndWithIt) {
  EventLoop loop;
  Pair pair(loop);
  ASSERT_TRUE(loop.run_until([&] { return pair.ready(); }, kPatience));
  std::optional<Error> dial;
  pair.context->connect(pair.listener->endpoint(), who(0), kPatience,
                        [&](const Result<std::shared_ptr<Connection>>& r) { dial = r.error(); });
  pair.context.reset();
  pair.listener.reset();
  ASSERT_TRUE(loop.run_until([&] { return dial.has_value(); }, kPatience));
  EXPECT_EQ(dial->code(), ErrorCode::kClosed);
  bool arrived = false;
  pair.b->on_control([&](const Buffer&) { arrived = true; });
  pair.a->send_control(Buffer::allocate(4), [](const Status&) {});
  EXPECT_TRUE(loop.run_until([&] { return arrived; }, kPatience));
}

TEST(TcpContext, BadAddressesAreSaidSo) {
  EventLoop loop;
  const auto context = make_tcp_context(loop, {});
  for (const char* address : {"", "localhost:1", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x",
                              "127.0.0.1:70000", "127.0.0.1:80x", "300.0.0.1:80", "192.0.2.1:0"}) {
    const auto listener = context->listen({address}, who(0), {}, {});
    ASSERT_FALSE(listener) << address;
    EXPECT_EQ(listener.error().code(), ErrorCode::kInvalidArgument) << address;
    EXPECT_NE(listener.error().message().find(address), std::string::npos);
  }
}

TEST(TcpContext, DialsFromItsOwnAddress) {
  EventLoop loop;
  const auto context =
      make_tcp_context(loop, {"127.0.0.77", false, std::chrono::seconds(5), Logger()});
  std::shared_ptr<Connection> b;
  std::shared_ptr<Connection> a;
  std::optional<Error> end;
  const auto listener = context
                            ->listen({"127.0.0.1:0"}, who(1),
                                     [&](std::shared_ptr<Connection> connection) {
                                       b = std::move(connection);
                                       b->on_closed([&](const Error& error) { end = error; });
                                     },
                                     {})
                            .value();
  context->connect(listener->endpoint(), who(0), kPatience,
                   [&](Result<std::shared_ptr<Connection>> result) { a = *result; });
  ASSERT_TRUE(loop.run_until([&] { return a && b; }, kPatience));
  a->close();
  ASSERT_TRUE(loop.run_until([&] { return end.has_value(); }, kPatience));
  EXPECT_NE(end->message().find("127.0.0.77"), std::string::npos) << end->message();
}

}  // namespace
}  // namespace holmes::transport
