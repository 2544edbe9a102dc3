#pragma once

// The Coordinator of a job: who is a member, which plan and generation are in force, when the job
// ends. It is off a step's critical path: members commit steps among themselves and report.
//
//   joining -> preparing -> training -> ending -> over
//                  ^            |
//                  +- agreeing <+   a host is lost (from preparing, too)
//
// Whatever ends a generation goes one way: announce g+1, wait until every member that is left is
// quiet, then prepare the next plan; an empty plan stops the job. Hosts that come, or ask to leave,
// wait for a step of the generation in force: one change at a time, and each makes progress. What
// members hold when they are quiet decides which step the job goes on from (resumption.hpp). Every
// wait for a host has a deadline; how long a step may take is not known, so a job in which nothing
// moves is only warned of.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "adapter.hpp"
#include "codec.hpp"
#include "executor_actor.hpp"
#include "holmes/actors/session.hpp"
#include "holmes/base/compute_queue.hpp"
#include "holmes/transport/connection.hpp"
#include "pause_detector.hpp"
#include "refusal_log.hpp"
#include "resumption.hpp"
#include "state_store.hpp"

namespace holmes::actors {

struct CoordinatorSpec {
  JobConfig job;
  std::string job_name;  ///< Identity of this run.
  partition::Plan plan;
  std::string data_hash;           ///< Of the text: every host must have the same.
  bool agents_are_remote = false;  ///< What ends is not the agent, but what started it.
  Step first_step;
  std::string checkpoint;  ///< To start from; empty: initial values.
  Duration join_deadline = std::chrono::seconds(30);
  Duration prepare_deadline = std::chrono::seconds(120);
  /// For members that are alive to become quiet: one may be writing a checkpoint.
  Duration agree_deadline = std::chrono::seconds(60);
  // Together with the launcher's grace of 3 s, everything has ended 5 s after a failure.
  Duration quiet_deadline = std::chrono::milliseconds(750);
  Duration leave_deadline = std::chrono::milliseconds(750);
};

/// What a Coordinator uses and does not own.
struct CoordinatorResources {
  transport::Context& context;
  StateStore& store;
  ComputeQueue& disk;  ///< Publishing a checkpoint waits for the disk.
  std::function<void(const Event&)> on_event;
  std::function<void(Outcome)> on_over;  ///< Runs once, on the executor.
};

// Messages to the Coordinator from its session.
struct StopJob {};
struct AgentStarted {
  HostId host;
  int process = 0;
};
struct AgentExited {
  HostId host;
  std::string how;  ///< "exit code 1", "signal 9 (Killed)"
  bool failed = true;
};

class Coordinator final : public ExecutorActor {
 public:
  Coordinator(caf::actor_system& system, Logger log, CoordinatorSpec spec,
              CoordinatorResources resources);
  ~Coordinator() override;

  /// Opens the port for agents; returns the address to dial. Once, after start(), on the executor.
  Result<std::string> listen(const transport::Endpoint& at);

 protected:
  caf::behavior make_behavior() override;

 private:
  enum class Phase : std::uint8_t { kJoining, kPreparing, kTraining, kAgreeing, kEnding, kOver };
  struct Agent {
    std::shared_ptr<transport::Connection> connection;
    std::uint64_t life = 0;  ///< Which agent of this host it is.
    std::vector<NicAddress> nics;
    std::map<NicId, Heartbeat::Nic> traffic;
    TimePoint last_heard;
    bool joined = false;
    bool member = false;   ///< Generations count on it.
    bool leaving = false;  ///< It has asked to leave.
    bool ready = false;
    bool quiet = false;
    bool gone = false;  ///< Another agent of this host may come.
    AgentQuiet report;  ///< Of the generation that ended last.
  };

  struct Suspicion {
    HostId reporter;
    FailureReport report;
  };
  /// Whom the lost links that were reported speak against.
  struct Blame {
    std::optional<HostId> host;  ///< Empty: a link, and neither of its ends.
    Incident incident;
  };
  /// From a change of members to the first step after it.
  struct Regrouping {
    Regrouped report;
    TimePoint reached;  ///< When the phase before this one was over.
  };
  /// A NIC that was lost.
  struct LostNic {
    bool down = true;  ///< And is not used.
    Duration pause{};  ///< Before it is tried again.
    Executor::TimerId timer = 0;
    std::set<HostNic> heard;  ///< Peers that a link to works again.
  };
  /// Where the state can be loaded from.
  struct Checkpoint {
    Step step;
    std::string folder;  ///< Empty: initial values.
  };

  // Connections and messages of agents.
  void lose_who_did_not_join();
  void accepted(std::shared_ptr<transport::Connection> connection);
  void turn_away(std::shared_ptr<transport::Connection> connection, const std::string& reason);
  void from_agent(HostId host, const Buffer& bytes);
  void on(HostId host, const Join& join);
  void on(HostId host, const AgentReady& ready);
  void on(HostId host, const AgentQuiet& quiet);
  void on(HostId host, const StepReport& report);
  void on(HostId host, const ValidationReport& report);
  void on(HostId host, const SaveReport& report);
  void on(HostId host, const Heartbeat& heartbeat);
  void on(HostId host, const FailureReport& report);
  void on(HostId host, const LeaveRequest& request);
  bool is_sound(HostId host, const AgentQuiet& quiet) const;
  void connection_lost(HostId host, const Error& error);
  void exited(const AgentExited& exited);
  bool is_heard_of(HostId host) const;
  void left();
  void tell(HostId host, const ControlMessage& message);
  void tell_all(const ControlMessage& message);
  void tell_members(const ControlMessage& message);

  // Hosts that come and leave (coordinator_members.cpp).
  bool may_come(HostId host) const;
  void greet(HostId host, std::shared_ptr<transport::Connection> connection);
  void change_members();
  bool may_change_members() const;
  void keep_leavers(const Error& why);
  void dismiss_leavers();
  void dismiss(HostId host);
  bool trains(HostId host) const;

  // The job.
  void prepare(Prepare order);
  void stop_requested();
  void committed(const CommittedStep& step);
  void published(Step step, Result<std::string> folder);
  void end_when_done();
  void lose(HostId host, std::string operation, Error cause);
  void fail(Incident incident);

  // Other plans for other speeds (coordinator_adapting.cpp).
  struct BetterPlan {
    JobConfig job;  ///< That gives it.
    std::string why;
  };
  void adapt();
  std::optional<BetterPlan> better_plan(const JobConfig& measured) const;
  void take_back();
  void stop_trial();

  // NICs that are lost, and come back (coordinator_nics.cpp).
  std::set<HostNic> nics_at_fault(const Blame& blame) const;
  bool use_other_nics(Blame& blame);
  void stop_using(const std::set<HostNic>& nics);
  void try_again_later(HostNic nic, Duration pause);
  void try_again(HostNic nic);
  void on(HostId host, const LinkWorks& link);
  std::vector<HostNic> peers_of(HostNic nic) const;
  bool is_back(HostNic nic) const;
  void forget_nics(HostId host);
  void set_port(HostNic nic, bool up);
  std::vector<HostNic> nics_down() const;
  std::string name(HostNic nic) const;

  // Going on after a loss (coordinator_recovery.cpp).
  bool can_go_on() const;
  void lose(HostId host, Incident incident);
  void links_lost();
  void recover(Incident incident);
  void regroup();
  void resume();
  std::vector<bool> hosts_to_plan_for() const;
  std::optional<Prepare> resume_with(const Resumption& resumption,
                                     const std::vector<HeldState>& held);
  bool go_back(Step from);
  bool save_is_due(Step step) const;
  Duration phase_duration();
  void regrouped();

  void end(Outcome outcome);
  void dismiss_when_quiet();
  void over_when_left();
  void set_deadline(Duration delay, std::function<void()> expired);
  void watch();
  void warn_when_stuck();
  Blame blame() const;
  void refuse(HostId host, const char* what);

  bool leaving() const { return phase_ == Phase::kEnding || phase_ == Phase::kOver; }
  bool all(bool Agent::*flag) const;
  std::string name(HostId host) const;
  Incident incident(std::string host, std::string operation, Error cause) const;
  std::string running_operation() const;

  const CoordinatorSpec spec_;
  JobConfig job_;  // as it is: NICs that were lost are down in its cluster
  CoordinatorResources resources_;
  std::unique_ptr<transport::Listener> listener_;
  std::vector<Agent> agents_;  // one for each host
  Phase phase_ = Phase::kJoining;
  Epoch epoch_{1};
  Generation generation_{0};
  partition::Plan plan_;                      // in force or in preparation
  Checkpoint begun_;                          // what the state goes back to
  std::optional<Checkpoint> published_;       // the newest of this job
  std::optional<Step> publishing_;            // what the disk is at
  std::optional<CommittedStep> last_commit_;  // since begun_
  std::shared_ptr<const std::vector<LayerTable>> table_;
  std::optional<Regrouping> regrouping_;
  int relinks_ = 0;  // generations without a commit that began since links were lost
  std::optional<Step> last_committed_;
  Step first_step_;          // of this generation
  std::uint64_t lives_ = 0;  // agents that have been accepted
  TimePoint last_step_at_;
  bool stop_requested_ = false;
  std::optional<Step> stopped_after_;  // the step that the members committed as their last
  std::map<HostNic, LostNic> lost_nics_;
  Adapter adapter_;
  std::optional<JobConfig> before_;    // the job before a change of plan that is on trial
  std::vector<Suspicion> suspicions_;  // links that an agent has lost, both hosts still here
  TimePoint moved_;                    // when something was last finished
  PauseDetector pauses_;
  std::map<Step, std::map<std::uint32_t, float>> validations_;
  std::map<Step, std::map<DeviceId, std::vector<SavedFile>>> saves_;
  std::optional<Step> saved_;      // updates that the last published checkpoint holds
  std::optional<Step> validated_;  // updates made before the last validation that is complete
  Outcome outcome_ = Outcome::kFinished;
  Executor::TimerId deadline_ = 0;
  Executor::TimerId watch_timer_ = 0;
  RefusalLog refusals_;
};

}  // namespace holmes::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(holmes::actors::StopJob)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(holmes::actors::AgentStarted)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(holmes::actors::AgentExited)
