#pragma once

// The tcp backend: a Context is one local address. A link is one socket for control messages and
// credits and one or more for bulk chunks, so that control never waits behind bulk.
//
// EventLoop is an Executor with one thread; any number of contexts share it. Contexts, listeners
// and connections belong to its thread. It must be destroyed after the contexts that use it;
// connections may outlive both and then only report that they are closed.

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "holmes/base/log.hpp"
#include "holmes/transport/connection.hpp"
#include "holmes/transport/tls.hpp"

namespace holmes::transport {

namespace tcp {
class LoopState;
}

struct TcpOptions;

class EventLoop final : public Executor {
 public:
  /// `busy_poll`: never sleeps while it waits, for the least latency at the price of a core.
  explicit EventLoop(bool busy_poll = false);
  ~EventLoop() override;  ///< stop(), then join().
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// Runs tasks on a thread of its own. Once.
  void start();
  /// From any thread, idempotent. All connections close, what they complete still runs, then the
  /// loop ends. Later tasks are dropped, and timers do not fire.
  void stop();
  /// Waits for the thread's end. Not from the loop's own thread.
  void join();
  bool on_loop_thread() const;

  /// Instead of start(): runs tasks on the calling thread until `done` is true after one of them
  /// (result: true) or `limit` has passed (false). For tests and small tools.
  bool run_until(const std::function<bool()>& done, Duration limit);

  void post(Task task) override;
  TimerId post_after(Duration delay, Task task) override;
  void cancel(TimerId timer) override;
  const Clock& clock() const override;

 private:
  friend std::unique_ptr<Context> make_tcp_context(EventLoop& loop, TcpOptions options);

  std::shared_ptr<tcp::LoopState> state_;
  std::thread thread_;
};

struct TcpOptions {
  /// Address that dialled sockets are bound to; empty: the system's choice.
  std::string local_address;
  /// XXH3-64 over every bulk chunk that is sent. Control messages always have one.
  bool checksum = false;
  /// Time that a peer has to say hello; a slower one is refused.
  Duration handshake_deadline = std::chrono::seconds(5);
  Logger logger;
  /// Bulk sockets of each link that is dialled, 1 to 16; chunks are striped over them. One fills a
  /// loopback or a single path; more help where a network limits each flow.
  std::uint8_t bulk_sockets = 1;
  /// The most that a link sends in bulk; 0: no limit of ours.
  double pacing_gbit_s = 0;
  /// What all connections prove themselves with, both ways; null: they are plain, and who speaks
  /// TLS is refused. Nothing of this is negotiated.
  std::shared_ptr<const Tls> tls = nullptr;
  /// Under TLS the names that certificates must have, by host number.
  std::vector<std::string> host_names = {};
};

/// Context::listen takes "address:port" with an IPv4 address ("127.1.2.1:0") or an IPv6 one in
/// brackets; port 0 asks for any free port.
std::unique_ptr<Context> make_tcp_context(EventLoop& loop, TcpOptions options);

}  // namespace holmes::transport
