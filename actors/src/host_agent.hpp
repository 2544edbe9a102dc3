#pragma once

// The HostAgent stands for one host in a job: it tells the coordinator what the host has, opens its
// NICs, builds a Stage and a Replica for each of its devices when a plan comes, and reports health.
// It passes orders down and reports up; it decides nothing about the job.
//
// A generation goes Prepare -> AgentReady -> AgentGo; it ends with Announce -> AgentQuiet. An empty
// plan ends the job, or this host's part in it. When the coordinator is gone the agent ends the job
// too.
//
// Between two generations the agent holds what the members of the first have left behind. It sends
// the parts of it that others need, and lets go of it only when the second one is told to go: until
// then any member may be lost, and the first one's state is needed again.

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "codec.hpp"
#include "executor_actor.hpp"
#include "host_environment.hpp"
#include "keepers.hpp"
#include "nic.hpp"
#include "pause_detector.hpp"
#include "replica.hpp"

namespace holmes::actors {

/// Of either end of the connection between an agent and the coordinator: no number of a host.
constexpr HostId kNoHost{0xffffffff};
/// NicId of connections between agents and the coordinator.
constexpr NicId kControlNic{0xffffffff};

/// How an agent's part in a job ended.
struct AgentEnd {
  bool failed = false;
  std::string reason;
};

class HostAgent final : public ExecutorActor {
 public:
  /// `ended` runs once, on the executor, when the agent has nothing left to do.
  /// `host` is its name in the cluster file; its number comes with the welcome.
  HostAgent(caf::actor_system& system, Logger log, std::string host, std::string job,
            HostEnvironment& environment, std::function<void(AgentEnd)> ended);
  ~HostAgent() override;

  /// Dials the coordinator; on the executor, once, after start(). While nobody listens there it
  /// dials again, for `patience`.
  void join(const transport::Endpoint& coordinator, Duration patience = {});
  /// Of its tensors; zeros before it has joined.
  BufferPool::Stats memory() const;

 protected:
  caf::behavior make_behavior() override;

 private:
  /// One device: its queue lives as long as the agent, its actors as long as a generation.
  struct Device {
    DeviceId id;
    std::unique_ptr<ComputeQueue> queue;
    std::unique_ptr<model::Engine> engine;
    std::shared_ptr<BufferPool> pool;      ///< The host's, or in the device's own memory.
    std::shared_ptr<BufferPool> payloads;  ///< Of what crosses to other stages.
    std::unique_ptr<Replica> replica;
    std::unique_ptr<Stage> stage;
    std::vector<std::shared_ptr<MemberState>> left = {};  ///< By members of earlier generations.
  };

  // From the coordinator. is_in_force() refuses orders of one that has been replaced.
  void dial(const transport::Endpoint& coordinator, TimePoint until);
  void connected(std::shared_ptr<transport::Connection> coordinator);
  void from_coordinator(const Buffer& bytes);
  bool is_in_force(Epoch epoch);
  void on(const Welcome& welcome);
  void on(const Prepare& prepare);
  void on(const AgentGo& go);
  void on(const Announce& announce);
  void on(const AgentStop& stop);
  void on(const TryLink& link);
  Status open(const Welcome& welcome);
  Status open_devices();
  Status open_nics();
  Status open_nic(NicId nic);

  // A generation (host_agent_generation.cpp).
  bool use_nics(const std::vector<HostNic>& down);
  void settle_and_build();
  void build();
  Status build_members(const Prepare& prepare);
  Status reserve_memory();
  void build_replica(Device& device, StageIndex stage,
                     const std::shared_ptr<const partition::Plan>& plan, const Keepers& keepers);
  void build_stage(Device& device, StageIndex stage, const partition::Plan& plan);
  void open_links(const Prepare& prepare);
  void ready_when_complete();
  void exchange_state();
  const HeldPiece* find_piece(const StateTransfer& transfer) const;
  void send_piece(const StateTransfer& transfer, const HeldPiece& piece);
  void report_when_quiet();
  void let_go_of_leavers();
  void leave();

  // From own actors and peers.
  void on(const ControlArrived& arrived);
  void on(const LinkUp& up);
  void on(const LinkLost& lost);
  void on(const MemberFailed& failed);
  void on(const Quiet& quiet);
  void tell(const ControlMessage& message);
  void report_failure(FailureReport report);
  void ask_to_leave();
  /// Tells the coordinator, regularly, that this host is alive.
  void beat();
  void watch_coordinator();
  bool is_coordinator_silent();
  bool may_send(HostId host, const Vote& vote) const;
  bool may_send(HostId host, const Commit& commit) const;
  void end(bool failed, std::string reason);

  const std::string host_name_;
  HostId host_;  // once it has been welcomed
  const std::string job_name_;
  caf::actor_system& system_;
  HostEnvironment& environment_;
  std::function<void(AgentEnd)> ended_;

  std::shared_ptr<transport::Connection> coordinator_;
  TimePoint coordinator_heard_;
  Duration coordinator_silence_max_{};
  std::optional<PauseDetector> pauses_;  // once it has joined
  Epoch epoch_;                          // highest of a coordinator so far
  JobConfig job_;
  partition::Cluster whole_cluster_;                   // as the welcome had it
  std::shared_ptr<const partition::Cluster> cluster_;  // without the NICs that are not to be used
  std::shared_ptr<const std::vector<LayerTable>> table_;
  std::shared_ptr<BufferPool> pool_;  // of devices without memory of their own
  std::unique_ptr<BatchSource> batches_;
  std::unique_ptr<StateStore> store_;
  std::unique_ptr<ComputeQueue> disk_;
  std::vector<Device> devices_;
  std::vector<OpenNic> opened_;  // what nics_ stand on
  std::vector<std::unique_ptr<Nic>> nics_;
  std::map<NicId, TrafficCounted> traffic_;
  std::map<DeviceId, double> slowness_;  // of steps that were finished since the last heartbeat

  Generation generation_;                 // of the plan in force or in preparation, or announced
  std::shared_ptr<const Prepare> order_;  // of that plan; empty before the first one
  std::shared_ptr<const Routes> routes_;
  std::set<std::pair<NicId, HostId>> links_up_;
  std::set<std::pair<NicId, HostId>> links_needed_;
  std::set<std::pair<NicId, HostId>> links_tried_;  // that the coordinator asked about
  std::set<DeviceId> members_preparing_;
  bool preparing_ = false;
  bool exchanged_ = false;  // state is on its way
  std::size_t settling_ = 0;
  std::size_t quiet_missing_ = 0;
  bool quiet_ = false;  // and has said so
  Executor::TimerId dial_timer_ = 0;
  Executor::TimerId beat_timer_ = 0;
  bool leaving_ = false;  // and has asked the coordinator
  bool over_ = false;
};

}  // namespace holmes::actors
