#pragma once

// The Stage actor runs the passes of one device's layers: a reactive state machine that starts the
// next pass of its program as soon as the messages that it needs are there. It never blocks; layers
// compute on the device's queue, one at a time.
//
// It knows nothing of optimizers: parameters are lent to it by the Replica bucket by bucket, and it
// gives gradients back leaf by leaf. It owns the activations and stashes of micro-batches in
// flight.

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "batches.hpp"
#include "executor_actor.hpp"
#include "holmes/base/compute_queue.hpp"
#include "holmes/model/gpt.hpp"
#include "messages.hpp"
#include "program.hpp"
#include "routes.hpp"

namespace holmes::actors {

struct StageSpec {
  Generation generation;
  StageIndex stage;
  DeviceId device;
  TrainingSpan span;
  Step first_step;
  model::MicroBatchShape shape;
  std::uint32_t channels = 0;
  bool has_embedding = false;
  bool has_head = false;
  double flops_per_s = 1e12;  ///< Of the device, for paced and simulated ones.
};

/// Told of each pass when it has been computed: for traces, statistics and tests.
using PassObserver = std::function<void(StageIndex, Step, const ProgramPass&)>;

/// What a Stage uses and does not own.
struct StageResources {
  ComputeQueue& compute;
  model::Engine& engine;  ///< Of the layers; used on `compute` alone.
  BufferPool& pool;
  BufferPool& payloads;  ///< Of what crosses to other stages; may be `pool`.
  const BatchSource& batches;
  caf::actor replica;
  caf::actor agent;
  PassObserver observer;  ///< May be empty.
};

class Stage final : public ExecutorActor {
 public:
  Stage(caf::actor_system& system, Executor& executor, Logger log, StageSpec spec,
        std::vector<std::unique_ptr<model::Layer>> layers, StageResources resources);

  /// Buffers that it holds at once at most, and such that cross (stage_memory.cpp).
  BufferDemand demand(const Routes& routes) const;
  BufferDemand payload_demand(const Routes& routes) const;

 protected:
  caf::behavior make_behavior() override;

 private:
  /// A micro-batch whose backward pass is still to come, or whose forward pass is going on.
  struct Flight {
    std::vector<BufferView> inputs;  ///< One for each slot; the embedding's stays empty.
    std::vector<Buffer> stashes;
    Buffer tokens;
    Buffer targets;
    BufferView output_gradient;  ///< Of the slot that the backward pass is at.
  };
  struct Bucket {
    Step step;  ///< The values are for this step.
    Buffer values;
  };
  struct Job;

  void on(const Go& go);
  void on(const Supersede& supersede);
  void on(ParametersReady& ready);
  void on(AccumulatorLent& lent);
  void on(TensorArrived& arrived);
  void on(const TensorTaken& taken);

  void advance();
  bool begin_pass();
  bool may_send_validation() const;
  bool receive_input(Flight& flight);
  bool receive_gradient(Flight& flight);
  bool acquire_tokens(Flight& flight);
  std::function<Status()> token_reader(Flight& flight);
  void run_forward();
  void run_backward();
  void submit(std::shared_ptr<Job> job, double flops, std::function<void()> work);
  void forward_done(Job& job);
  void backward_done(Job& job);
  void finish_forward(Flight& flight, Buffer output, float loss);
  void give_back_gradients(std::size_t slot);
  void end_pass();
  void report_times();
  void next_step();
  void reserve_ahead();
  std::size_t reservations_max(const Routes& routes) const;
  void reserve(Step step, const ProgramPass& pass);
  void reply_quiet();

  bool has_parameters(std::size_t slot) const;
  bool is_last_of_leaf(MicroBatch micro_batch) const;
  transport::BulkTag activation_tag(Step step, MicroBatch micro_batch, bool incoming) const;
  transport::BulkTag gradient_tag(Step step, MicroBatch micro_batch, bool incoming) const;
  transport::TensorShape activation_shape() const;
  std::size_t activation_bytes() const;
  /// A pooled buffer; on failure reports it and returns an empty handle.
  Buffer acquire(BufferPool& pool, std::size_t bytes, const char* what);
  void fail(std::string operation, Error error);

  const StageSpec spec_;
  const std::vector<std::unique_ptr<model::Layer>> layers_;
  StageResources resources_;
  std::shared_ptr<const Routes> routes_;  // empty until Go

  Step step_;
  std::vector<ProgramPass> program_;
  std::size_t position_ = 0;  // of the running pass in program_
  bool in_pass_ = false;
  std::size_t slot_ = 0;          // layer that the running pass is at
  bool computing_ = false;        // an operator is on the device's queue
  std::vector<double> slowness_;  // of the operators of this step, against what was modelled
  bool stopped_ = false;          // superseded, or failed
  caf::actor quiet_to_;           // who waits for the running operator to end
  Generation quiet_generation_;

  std::map<MicroBatch, Flight> flights_;
  std::map<transport::BulkTag, BufferView> inbox_;
  std::vector<Bucket> buckets_;                                             // one for each slot
  std::map<std::pair<std::uint32_t, std::uint32_t>, Buffer> accumulators_;  // by slot and leaf

  Step reserved_step_;  // reserve_ahead() has come to this place
  std::vector<ProgramPass> reserved_program_;
  std::size_t reserved_position_ = 0;
  std::size_t reserved_count_ = 0;      // reservations whose payload no pass has taken yet
  std::uint32_t validations_sent_ = 0;  // that the next stage has not taken yet
};

}  // namespace holmes::actors
