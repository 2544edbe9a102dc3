#pragma once

// Stage actors alone: no Replica, no NIC. Probes stand in for everybody else, and the test forges
// their messages. Beside it, what the same layers give when they are called directly.

#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "actors/local_job.hpp"

namespace holmes::actors::testing {

/// Keeps what is sent to it.
class Probe final : public ExecutorActor {
 public:
  Probe(caf::actor_system& system, Executor& executor)
      : ExecutorActor(system, executor, Logger()) {}

  std::vector<GradientReady> gradients;
  std::vector<LossReady> losses;
  std::vector<TensorArrived> tensors;
  std::vector<MemberFailed> failures;
  std::vector<Quiet> quiet;

 protected:
  caf::behavior make_behavior() override;
};

/// Runs work when told to.
class HeldQueue final : public ComputeQueue {
 public:
  void submit(ComputePriority, Duration, Task work, Executor& home, Task done) override;
  std::size_t held() const { return jobs_.size(); }
  void run_one();

 private:
  struct Job {
    Task work;
    Executor* home;
    Task done;
  };
  std::deque<Job> jobs_;
};

/// What a layer was given, by address.
struct LayerCall {
  StageIndex stage;
  std::size_t slot = 0;
  bool backward = false;
  const float* in = nullptr;
  const float* out = nullptr;
};

struct BenchShape {
  std::uint32_t stages = 3;
  std::uint32_t blocks_per_stage = 1;
  std::uint32_t micro_batches = 2;
  std::uint32_t leaves = 1;
  std::uint64_t steps = 1;
};

class StageBench {
 public:
  static constexpr Generation kGeneration{7};

  /// Real Stage actors at `real`, probes elsewhere; their operators run on `queue`, or at once.
  StageBench(const BenchShape& shape, const std::set<std::uint32_t>& real, std::uint64_t seed,
             ComputeQueue* queue = nullptr);
  ~StageBench();

  // Messages, each made anew; deliver() sends them and runs until nothing is left to do.
  struct Message {
    std::function<void(Generation)> send;
  };
  /// All that `stage` needs for `step` (and to begin), in no particular order.
  std::vector<Message> messages(std::uint32_t stage, Step step);
  void drain() { executor_.drain(); }
  void supersede(std::uint32_t stage, Generation generation);

  /// Gradients of `step` came back whole, in the memory that was lent, with the bits that the
  /// layers give when called directly; outputs and losses too; nothing is held any more.
  void expect_step(std::uint32_t stage, Step step);

  Probe& replica(std::uint32_t stage) { return *replicas_.at(stage); }
  Probe& neighbour(std::uint32_t stage) { return *neighbours_.at(stage); }
  Probe& agent() { return *agent_; }
  const std::vector<LayerCall>& calls() const { return calls_; }
  const BufferPool& pool() const { return pool_; }

 private:
  class Batches;
  class SpyLayer;

  void build_stage(std::uint32_t stage, ComputeQueue& queue);
  std::vector<std::unique_ptr<model::Layer>> layers(std::uint32_t stage);
  std::size_t slots(std::uint32_t stage);
  Buffer random_floats(std::size_t count, std::uint64_t name) const;
  Buffer parameters(std::uint32_t stage, std::size_t slot, Step step);
  Buffer input(std::uint32_t stage, Step step, std::uint32_t micro_batch) const;
  Buffer output_gradient(std::uint32_t stage, Step step, std::uint32_t micro_batch) const;
  transport::BulkTag tag(transport::BulkKind kind, std::uint32_t from, std::uint32_t to, Step step,
                         std::uint32_t micro_batch) const;
  std::size_t activation_floats() const;

  struct Direct {
    std::map<std::pair<std::size_t, std::uint32_t>, Buffer> gradients;  // by slot and leaf
    std::vector<Buffer> outputs;                                        // by micro-batch
    std::vector<Buffer> input_gradients;
    std::vector<float> losses;
  };
  Direct direct(std::uint32_t stage, Step step);
  void run_direct(std::uint32_t stage, Step step, std::uint32_t micro_batch, Direct& into);

  const BenchShape shape_;
  const std::uint64_t seed_;
  const model::GptConfig config_;
  ActorRuntime runtime_;
  DrainedExecutor executor_;
  InlineQueue inline_;
  BufferPool pool_{std::size_t{1} << 28};
  std::unique_ptr<model::Engine> engine_ = model::make_reference_engine();
  std::unique_ptr<Batches> batches_;
  std::shared_ptr<const partition::Plan> plan_;
  std::shared_ptr<const Routes> routes_;
  std::unique_ptr<Probe> agent_;
  std::map<std::uint32_t, std::unique_ptr<Probe>> replicas_;
  std::map<std::uint32_t, std::unique_ptr<Probe>> neighbours_;
  std::map<std::uint32_t, std::unique_ptr<Stage>> stages_;
  std::vector<LayerCall> calls_;
  /// Handles of the parameters and addresses of the accumulators that were lent.
  std::map<std::tuple<std::uint32_t, std::size_t, Step>, Buffer> lent_values_;
  std::map<std::tuple<std::uint32_t, std::size_t, std::uint32_t, Step>, const std::byte*> lent_;
};

}  // namespace holmes::actors::testing
