#pragma once

// The sim backend: hosts, NICs and fabrics in virtual time, in one thread. A transfer takes latency
// + bytes/bandwidth, each NIC sends and receives one bulk chunk at a time, control is not held up
// by bulk. Faults are injected by name. The same seed and calls give the same run: trace_hash().
//
// SimLoop must outlive the network, its contexts and connections; the network may go earlier.

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holmes/base/random.hpp"
#include "holmes/transport/connection.hpp"

namespace holmes::transport {

/// Virtual time and the tasks that run in it. The loop itself is an executor; strands are further
/// ones: tasks of one strand run in order, which strand goes next is chosen by the seed.
class SimLoop final : public Executor, public Clock {
 public:
  explicit SimLoop(std::uint64_t seed);
  ~SimLoop() override;
  SimLoop(const SimLoop&) = delete;
  SimLoop& operator=(const SimLoop&) = delete;

  /// A further executor, owned by the loop.
  Executor& make_strand();
  /// The strand's process is dead: its tasks and timers are dropped, now and later.
  void retire(Executor& strand);

  /// Runs one ready task. False: there is none.
  bool run_ready_one();
  /// Sets the clock to the earliest timer and makes ready what is due then. False: there is none.
  /// Asserts that no task is ready.
  bool advance_to_next_event();
  bool has_ready() const { return ready_count_ > 0; }
  std::optional<TimePoint> next_event() const;
  /// Nothing is ready and no timer is set.
  bool idle() const { return !has_ready() && timers_.empty(); }
  /// Sets the clock, for an outer world that has earlier events of its own; never past
  /// next_event().
  void advance_to(TimePoint time);
  /// Runs until `done` (true), or until nothing is left or `limit` of virtual time has passed.
  bool run_until(const std::function<bool()>& done, Duration limit);

  /// Mixes a number into the trace.
  void note(std::uint64_t value) { trace_ = mix64(trace_ ^ value); }
  std::uint64_t trace_hash() const { return trace_; }

  void post(Task task) override;
  TimerId post_after(Duration delay, Task task) override;
  void cancel(TimerId timer) override;
  const Clock& clock() const override { return *this; }
  TimePoint now() const override { return now_; }

 private:
  class Strand;
  struct Timer {
    Strand* strand;
    Task task;
  };

  void post_to(Strand& strand, Task task);
  TimerId post_after_to(Strand& strand, Duration delay, Task task);

  Random random_;
  TimePoint now_{};
  std::uint64_t trace_ = 0;
  std::size_t ready_count_ = 0;
  TimerId next_timer_ = 1;
  std::vector<std::unique_ptr<Strand>> strands_;  // the first is the loop's own
  std::map<std::pair<TimePoint, TimerId>, Timer> timers_;
  std::map<TimerId, TimePoint> due_;
};

namespace sim {
class NetworkState;
}

class SimNetwork {
 public:
  SimNetwork(SimLoop& loop, std::uint64_t seed);
  ~SimNetwork();
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  /// NICs of one fabric reach each other; `jitter` is added to the latency, up to so much.
  void add_fabric(const std::string& name, double gbit_s, Duration latency, Duration jitter = {});
  /// `nic` is "host/name". Without `gbit_s` it has the fabric's rate.
  void add_nic(const std::string& nic, const std::string& fabric,
               std::optional<double> gbit_s = {});
  /// The NIC as a Context of a process that runs on `executor` (the loop or one of its strands).
  /// It listens at "host/name", or at "host/name:port" where several services share the NIC.
  std::unique_ptr<Context> make_context(const std::string& nic, Executor& executor);

  // Faults. Cut paths lose nothing: like TCP they hold what is under way until they heal.
  void cut(const std::string& from_nic, const std::string& to_nic);  ///< One way.
  void heal(const std::string& from_nic, const std::string& to_nic);
  void cut_nic(const std::string& nic);  ///< All its paths, both ways.
  void heal_nic(const std::string& nic);
  void heal_all();
  /// From now on `extra` more latency to and from this NIC.
  void delay(const std::string& nic, Duration extra);
  void set_rate(const std::string& nic, double gbit_s);
  /// Ends all connections between two NICs, as a reset would: both ends see kClosed.
  void reset(const std::string& nic_a, const std::string& nic_b);
  /// The host's process dies: nothing at its ends completes any more, its peers' connections end.
  /// `silent`: the whole machine is gone, and the peers hear nothing.
  void kill_host(const std::string& host, bool silent = false);
  /// The machine of a host that was killed silently is on again; its processes are new ones.
  void revive_host(const std::string& host);

 private:
  std::shared_ptr<sim::NetworkState> state_;
};

}  // namespace holmes::transport
