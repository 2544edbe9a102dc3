#pragma once

// The Replica actor owns the parameters, gradients and optimizer shard of one device's layers. It
// lends memory to the Stage, sums gradients over the reduction tree, exchanges shards with the
// other replicas of its stage, votes, and after the commit updates its shard and gathers the
// others'.
//
// A step at a shard owner is reduced, then committed, then applied (DETAILS G1). Until its commit
// nothing of the step before is overwritten. A bucket is one layer.
//
// It never sees activations, and the Stage never sees the optimizer.

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "executor_actor.hpp"
#include "holmes/base/compute_queue.hpp"
#include "holmes/model/optimizer.hpp"
#include "holmes/partition/reduction_tree.hpp"
#include "messages.hpp"
#include "model_table.hpp"
#include "program.hpp"
#include "routes.hpp"
#include "state_store.hpp"
#include "vote_box.hpp"

namespace holmes::actors {

struct ReplicaSpec {
  Generation generation;
  StageIndex stage;
  DeviceId device;
  std::shared_ptr<const partition::Plan> plan;
  std::shared_ptr<const std::vector<LayerTable>> table;  ///< Of the whole model.
  std::vector<std::uint32_t> layers;                     ///< Numbers of the stage's layers.
  TrainingSpan span;
  Step first_step;
  std::uint64_t checkpoint_every = 0;
  std::uint64_t seed = 0;
  std::string checkpoint;  ///< Folder to load from; empty: initial values.
  model::AdamW optimizer;
  model::LearningRate learning_rate;
  float clip_norm = 0;
};

struct ReplicaResources {
  ComputeQueue& compute;
  ComputeQueue& disk;
  BufferPool& pool;
  StateStore& store;
  caf::actor agent;
};

class Replica final : public ExecutorActor {
 public:
  Replica(caf::actor_system& system, Executor& executor, Logger log, ReplicaSpec spec,
          ReplicaResources resources);

  /// Initialises or loads the state on the device's queue, then tells the agent MemberReady.
  void prepare();
  /// Buffers that it holds at once at most, in whatever order messages come (replica_memory.cpp).
  BufferDemand demand(const Routes& routes) const;

 protected:
  caf::behavior make_behavior() override;

 private:
  /// One layer: its state and where the running step stands.
  struct Bucket {
    const LayerTable* table = nullptr;
    ElementRange shard;
    Buffer parameters;  ///< All elements of the layer.
    Buffer exp_avg;     ///< Of the shard.
    Buffer exp_avg_sq;

    // Reducing the running step. Lent leaves, sums that wait for their sibling and running
    // additions each have one gradient buffer.
    std::uint32_t leaf_next = 0;    ///< To be lent.
    std::uint32_t leaves_lent = 0;  ///< To the Stage.
    std::uint32_t gradients_held = 0;
    std::map<partition::TreeNode, Buffer> nodes;         ///< Sums of nodes computed here.
    std::map<partition::TreeNode, BufferView> partials;  ///< Of the shard, from every replica.
    std::map<DeviceId, BufferView> tied;                 ///< The copy's gradient, by its owner.
    Buffer reduced;                                      ///< Of the shard.
    bool folded = false;                                 ///< The fold over all partials has begun.
    bool finishing = false;                              ///< Nothing more is to come for it.
    bool done = false;                                   ///< Reduced, with its squares taken.
    std::vector<double> squares;  ///< Of the owned chunks that count in the norm.

    // Applying the last committed step.
    Buffer applying;          ///< Its reduced gradients.
    std::size_t missing = 0;  ///< Own update and slices of others that are still to come.
  };

  // Messages.
  void on(const Go& go);
  void on(const Supersede& supersede);
  void on(GradientReady& ready);
  void on(const LossReady& ready);
  void on(TensorArrived& arrived);
  void on(Vote& vote);
  void on(const Commit& commit);

  // Memory and the start of a step (replica.cpp).
  Status load_state();
  void begin_step();
  void lend(std::uint32_t slot);
  void reserve_partials();
  void add_tied_demand(const Routes& routes, BufferDemand& demand) const;
  void replay_early();

  // Reducing (replica_reduce.cpp).
  void insert_node(std::uint32_t slot, partition::TreeNode node, Buffer sum);
  void distribute(std::uint32_t slot, partition::TreeNode node, Buffer sum);
  void fold_when_complete(std::uint32_t slot);
  void folded(std::uint32_t slot, Buffer reduced);
  void send_tied_gradients(Bucket& bucket);
  void finish_when_complete(std::uint32_t slot);
  void vote_when_reduced();
  Vote own_vote();

  // Committing and applying (replica_commit.cpp).
  void reserve_updates();
  void decide(const Vote& complete);
  void update(std::uint32_t slot, const Commit& commit);
  void publish(std::uint32_t slot, Step step, Buffer updated);
  void take_slice(std::uint32_t slot, const transport::BulkTag& tag, BufferView payload);
  void slice_done(std::uint32_t slot);
  void save();

  // Helpers.
  void run(ComputeQueue& queue, ComputePriority priority, std::size_t bytes,
           std::function<void()> work, std::function<void()> done);
  void fail(std::string operation, Error error);
  void reply_quiet();
  Buffer acquire(std::size_t bytes, const char* what);
  std::uint32_t slot_of(LayerIndex layer) const;
  std::size_t replica_count() const { return shares().size(); }
  const std::vector<partition::Share>& shares() const;
  const std::vector<partition::Share>& shares(StageIndex stage) const;
  StageIndex last_stage() const;
  const LayerTable& head_table() const { return spec_.table->back(); }
  bool has_embedding() const { return spec_.stage.value() == 0; }
  bool has_head() const { return spec_.stage == last_stage(); }
  transport::BulkTag tag(transport::BulkKind kind, Step step, std::uint32_t layer, DeviceId source,
                         DeviceId destination, std::uint32_t node = 0) const;

  const ReplicaSpec spec_;
  ReplicaResources resources_;
  std::size_t share_ = 0;  // own index in the stage's shares
  partition::LeafRange leaves_;
  std::uint32_t gradients_max_ = 0;                             // of one bucket, held at once
  std::vector<partition::TreeNode> subtrees_;                   // own maximal subtrees
  std::vector<std::vector<partition::TreeNode>> all_subtrees_;  // of every share
  std::size_t node_count_ = 0;                                  // of all replicas together
  std::vector<TiedSlice> tied_slices_;

  std::shared_ptr<const Routes> routes_;  // empty until Go
  caf::actor stage_;
  std::vector<Bucket> buckets_;
  Step step_;                     // being reduced
  std::optional<Commit> commit_;  // the last one, whose step is being or has been applied
  std::vector<MicroBatchLoss> losses_;
  VoteBox votes_;
  bool voted_ = false;
  bool saving_ = false;
  bool stop_requested_ = false;
  std::vector<TensorArrived> early_;  // of a step that this member has not come to

  std::size_t jobs_ = 0;  // on a queue
  bool stopped_ = false;
  caf::actor quiet_to_;
  Generation quiet_generation_;
};

/// Bytes of a shape of `elements` floats.
transport::TensorShape flat_shape(std::size_t elements);

}  // namespace holmes::actors
