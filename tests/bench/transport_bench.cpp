// What a link of the tcp backend does on loopback: time of a 64 B control round trip, goodput of
// 4 MiB payloads. The far end has a loop and a thread of its own, as another process would.
#include <atomic>

#include <benchmark/benchmark.h>

#include "holmes/transport/tcp.hpp"

namespace {

using namespace holmes;
using namespace holmes::transport;

constexpr Duration kPatience = std::chrono::seconds(20);
constexpr std::size_t kPayloadBytes = 4 * kMiB;

Identity who(std::uint32_t host) {
  return {"bench", HostId(host), NicId(0), Epoch(0)};
}

BulkTag tag(std::uint32_t number) {
  BulkTag tag;
  tag.node = number;
  return tag;
}

/// The near end on the caller's thread, the far end on its own.
class Bench {
 public:
  explicit Bench(bool checksum)
      : near_context_(make_tcp_context(near_, options(checksum))),
        far_context_(make_tcp_context(far_, options(checksum))) {
    far_.post([this] {
      const auto accepted = [this](std::shared_ptr<Connection> connection) {
        b_ = std::move(connection);
        b_->on_control(
            [this](Buffer message) { b_->send_control(std::move(message), [](Status) {}); });
        reserve();
      };
      listener_ = far_context_->listen({"127.0.0.1:0"}, who(1), accepted, {}).value();
      port_ready_ = true;
    });
    far_.start();
    near_.run_until([this] { return port_ready_.load(); }, std::chrono::milliseconds(1));
    while (!port_ready_) near_.run_until([] { return false; }, std::chrono::milliseconds(1));
    near_context_->connect(listener_->endpoint(), who(0), kPatience,
                           [this](Result<std::shared_ptr<Connection>> result) { a_ = *result; });
    near_.run_until([this] { return a_ != nullptr; }, kPatience);
    a_->on_control([this](const Buffer&) { ++echoes_; });
  }

  ~Bench() {
    far_.stop();
    far_.join();
  }

  void round_trip() {
    const auto wanted = echoes_ + 1;
    a_->send_control(message_, [](Status) {});
    near_.run_until([&] { return echoes_ == wanted; }, kPatience);
  }

  void send() {
    bool sent = false;
    a_->send_bulk(tag(sent_++), {}, payload_, [&](const Status&) { sent = true; });
    near_.run_until([&] { return sent; }, kPatience);
  }

 private:
  static TcpOptions options(bool checksum) {
    return {"127.0.0.1", checksum, std::chrono::seconds(5), Logger()};
  }

  /// Two buffers are always reserved, so that the sender never waits for one.
  void reserve() {
    while (reserved_ < received_ + 2) {
      auto buffer = pool_.acquire(kPayloadBytes).value();
      b_->receive_bulk(tag(reserved_++), {}, std::move(buffer), [this](const Result<Buffer>& got) {
        if (!got) return;
        ++received_;
        far_.post([this] { reserve(); });
      });
    }
  }

  BufferPool pool_{64 * kMiB};
  EventLoop near_;
  EventLoop far_;
  std::unique_ptr<Context> near_context_;
  std::unique_ptr<Context> far_context_;
  std::unique_ptr<Listener> listener_;
  std::shared_ptr<Connection> a_;
  std::shared_ptr<Connection> b_;
  std::atomic<bool> port_ready_ = false;
  Buffer message_ = Buffer::allocate(64);
  Buffer payload_ = Buffer::allocate(kPayloadBytes);
  int echoes_ = 0;
  std::uint32_t sent_ = 0;
  std::uint32_t reserved_ = 0;
  std::uint32_t received_ = 0;
};

void control_round_trip(benchmark::State& state) {
  Bench bench(false);
  for ([[maybe_unused]] auto iteration : state) bench.round_trip();
}
BENCHMARK(control_round_trip)->UseRealTime();

void bulk_goodput(benchmark::State& state) {
  Bench bench(state.range(0) != 0);
  for ([[maybe_unused]] auto iteration : state) bench.send();
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kPayloadBytes));
}
BENCHMARK(bulk_goodput)->ArgName("checksum")->Arg(0)->Arg(1)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
