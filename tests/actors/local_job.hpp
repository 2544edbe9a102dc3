#pragma once

// Stages and Replicas of a whole job on one executor, without hosts and NICs: every payload goes
// from actor to actor. The test drains the executor and looks at what the actors reported.

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "actor_runtime.hpp"
#include "holmes/base/random.hpp"
#include "replica.hpp"
#include "sim/memory_store.hpp"
#include "stage.hpp"
#include "support/serial_trainer.hpp"

namespace holmes::actors::testing {

/// Runs tasks when told to; with a seed, in another order for each: messages of different actors
/// overtake each other, those of one executor do not (each actor gets a strand of its own).
class DrainedExecutor {
 public:
  /// Seed 0: always the first actor that has something to do, so that all steps are alike.
  explicit DrainedExecutor(std::uint64_t seed) : in_turn_(seed == 0), random_(seed) {}

  class Strand final : public Executor {
   public:
    explicit Strand(DrainedExecutor& owner) : owner_(owner) {}
    void post(Task task) override {
      if (!silent_) tasks_.push_back(std::move(task));
    }
    /// From now on nothing that is sent here arrives, what waits included.
    void silence() {
      silent_ = true;
      tasks_.clear();
    }
    TimerId post_after(Duration, Task) override { return 0; }
    void cancel(TimerId) override {}
    const Clock& clock() const override { return owner_.clock_; }

   private:
    friend class DrainedExecutor;
    DrainedExecutor& owner_;
    std::deque<Task> tasks_;
    bool silent_ = false;
  };

  Strand& strand() { return *strands_.emplace_back(std::make_unique<Strand>(*this)); }
  /// Runs until no task is left, or until `when` holds.
  void drain(const std::function<bool()>& when = {});

 private:
  SteadyClock clock_;
  const bool in_turn_;
  Random random_;
  std::vector<std::unique_ptr<Strand>> strands_;
};

/// Runs work at once and reports it done later.
class InlineQueue final : public ComputeQueue {
 public:
  void submit(ComputePriority, Duration, Task work, Executor& home, Task done) override {
    work();
    work = {};
    home.post(std::move(done));
  }
};

/// A job whose plan is given by stage: blocks and leaf ranges of its replicas.
struct LocalPlan {
  struct Stage {
    std::uint32_t first_block;
    std::uint32_t last_block;
    std::vector<partition::LeafRange> replicas;
  };
  std::vector<Stage> stages;
  partition::ScheduleKind schedule = partition::ScheduleKind::k1F1B;
  std::vector<std::string> orders = {};  ///< Network-aware: of each device.
};
partition::Plan make_plan(const LocalPlan& local, const partition::JobShape& job);

class LocalJob {
 public:
  struct PassSeen {
    StageIndex stage;
    Step step;
    ProgramPass pass;
  };

  LocalJob(const holmes::testing::SerialJob& job, const LocalPlan& plan, std::uint64_t steps,
           const model::TokenFile& file, model::Engine& engine, std::uint64_t seed);
  ~LocalJob();

  /// Trains to the end (or to where it stops by itself), or until `when` holds.
  void run(const std::function<bool()>& when = {});

  /// Stages and Replicas, in the order of the plan's members: Stage 2i, Replica 2i + 1.
  std::size_t actor_count() const { return 2 * members_.size(); }
  /// Drops all messages to one of them from now on.
  void silence(std::size_t actor);

  const std::vector<StepCommitted>& steps() const { return steps_; }
  const std::vector<PassSeen>& passes() const { return passes_; }
  const std::vector<MemberFailed>& failures() const { return failures_; }
  MemoryStore& store() { return store_; }
  const BufferPool& pool() const { return pool_; }
  const std::optional<BufferPool>& payloads() const { return payloads_; }
  /// Parameters after `step` updates, all layers in order (from the checkpoint taken there).
  std::vector<float> weights(Step step) const;

 private:
  class Batches;
  class Agent;
  struct Member;

  void build(const holmes::testing::SerialJob& job, std::uint64_t steps, model::Engine& engine);

  ActorRuntime runtime_;
  DrainedExecutor executor_;
  InlineQueue compute_;
  BufferPool pool_;
  std::optional<BufferPool> payloads_;  // where the engine wants them apart
  MemoryStore store_;
  std::unique_ptr<Batches> batches_;
  std::shared_ptr<const partition::Plan> plan_;
  std::shared_ptr<const std::vector<LayerTable>> table_;
  std::unique_ptr<Agent> agent_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<StepCommitted> steps_;
  std::vector<PassSeen> passes_;
  std::vector<MemberFailed> failures_;
};

}  // namespace holmes::actors::testing
