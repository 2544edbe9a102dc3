#pragma once

// A whole job in one process and in virtual time: the real Coordinator, HostAgents, Nics, Stages
// and Replicas of every host, on transport/sim. Computation is real and takes modelled time. One
// seed gives one run: which ready actor goes next is drawn from it, and faults may be injected by
// name.
//
// Everything runs on the calling thread, inside run().

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "actor_runtime.hpp"
#include "coordinator.hpp"
#include "holmes/model/data.hpp"
#include "holmes/transport/sim.hpp"
#include "host_agent.hpp"
#include "sim/memory_store.hpp"

namespace holmes::actors {

struct SimJob {
  JobConfig job;
  std::uint64_t seed = 1;
  Step first_step;  ///< Above 0: go on from the checkpoint of so many updates in `store`.
  MemoryStore* store = nullptr;  ///< Shared by runs that go on from one another; may be null.
};

/// One pass that a stage has computed.
struct PassRecord {
  HostId host;
  StageIndex stage;
  Step step;
  ProgramPass pass;
  TimePoint at;
};

class SimWorld {
 public:
  explicit SimWorld(SimJob job);
  ~SimWorld();
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  /// Runs until the job is over (its outcome), or `limit` of virtual time has passed (kTimeout).
  Result<Outcome> run(Duration limit);
  /// Runs until `when` holds or the job is over; false: the limit passed first.
  bool run_until(const std::function<bool()>& when, Duration limit);

  void request_stop();
  /// The process of a host dies, as by kill -9; `silent`: its machine too, so that nobody is told.
  void kill(HostId host, bool silent = false);
  /// A new agent of a host that was killed, or has left.
  void revive(HostId host);
  /// Everything that the host computes takes so many times longer than modelled from now on.
  void slow_down(HostId host, double slowness);
  /// The host is asked to leave, as by SIGTERM.
  void leave(HostId host);
  transport::SimNetwork& network() { return network_; }

  const std::vector<Event>& events() const { return events_; }
  template <class T>
  std::vector<T> events_of() const {
    std::vector<T> found;
    for (const auto& event : events_)
      if (const auto* item = std::get_if<T>(&event)) found.push_back(*item);
    return found;
  }
  const std::vector<PassRecord>& passes() const { return passes_; }
  MemoryStore& store() { return *store_; }
  BufferPool::Stats memory(HostId host) const;
  TimePoint now() const { return loop_.now(); }
  /// The same for two runs only if they did the same things in the same order at the same times.
  std::uint64_t trace_hash() const { return loop_.trace_hash(); }
  /// How each host's agent ended, for those that have.
  const std::map<HostId, AgentEnd>& ends() const { return ends_; }

 private:
  class Host;
  class Queue;

  transport::SimLoop loop_;
  transport::SimNetwork network_;
  ActorRuntime runtime_;
  SimJob job_;
  MemoryStore own_store_;
  MemoryStore* store_;
  std::shared_ptr<const model::TokenFile> text_;
  std::unique_ptr<transport::Context> coordinator_context_;
  std::unique_ptr<Queue> coordinator_disk_;
  std::unique_ptr<Coordinator> coordinator_;
  std::string coordinator_address_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::unique_ptr<Host>> former_hosts_;  // what others do with their memory goes on
  std::vector<Event> events_;
  std::vector<PassRecord> passes_;
  std::map<HostId, AgentEnd> ends_;
  std::set<HostId> killed_;
  std::optional<Outcome> outcome_;
};

}  // namespace holmes::actors
