#pragma once

// The Replica actor owns the parameters, gradients and optimizer shard of one device's layers. It
// lends memory to the Stage, sums gradients over the reduction tree, exchanges shards with the
// other replicas of its stage, votes, and after the commit updates its shard and gathers the
// others'.
//
// A step at a shard owner is reduced, then committed, then applied. Until its commit
// nothing of the step before is overwritten. A bucket is one layer.
//
// It also keeps copies of other members' shards: it gets their reduced gradients before anybody
// votes, and applies the same updates. When a generation ends it leaves its state and its copies
// behind (state.hpp).
//
// It never sees activations, and the Stage never sees the optimizer.

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "executor_actor.hpp"
#include "holmes/base/compute_queue.hpp"
#include "holmes/partition/reduction_tree.hpp"
#include "messages.hpp"
#include "model_table.hpp"
#include "program.hpp"
#include "routes.hpp"
#include "state.hpp"
#include "state_store.hpp"
#include "vote_box.hpp"

namespace holmes::actors {

/// A shard whose state a member keeps a copy of: that of one share of a stage.
struct KeptShare {
  DeviceId owner;
  std::vector<std::uint32_t> layers;  ///< Numbers of the stage's layers.
  std::size_t share = 0;              ///< Index in the stage's shares.
  std::size_t share_count = 0;
};

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
  UpdateRule rule;
  std::optional<DeviceId> keeper = {};        ///< Of its own shards.
  std::vector<KeptShare> kept = {};           ///< What it keeps for others.
  std::vector<StateTransfer> transfers = {};  ///< Where the state comes from instead, if any.
  bool save = false;                          ///< Begin with a checkpoint.
  bool stop = false;                          ///< Train no step.
};

struct ReplicaResources {
  ComputeQueue& compute;
  model::Engine& engine;  ///< Used on `compute` alone.
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
  /// Instead: takes the state from the members that have it. Their links are open.
  void receive_state(std::shared_ptr<const Routes> routes);
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
  /// The copy of one shard of one layer that is kept for its owner.
  struct Kept {
    DeviceId owner;
    const LayerTable* table = nullptr;
    ChunkRange chunks;
    ElementRange range;  ///< That its owner updates: all arrays have just these elements.
    Buffer parameters;
    Buffer exp_avg;
    Buffer exp_avg_sq;
    BufferView gradient;  ///< Reduced, of the running step; while it is applied, of the one before.
    bool reduced = false;  ///< The running step's is here.
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
  void acquire_state();
  Status load_state();
  Status load_layers(std::span<const LayerState> layers);
  void begin_step();
  void lend(std::uint32_t slot);
  void reserve_partials();
  void add_tied_demand(const Routes& routes, BufferDemand& demand) const;
  void add_kept_demand(BufferDemand& demand) const;
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

  // Copies for others, and state that changes hands (replica_state.cpp).
  void send_to_keeper(const Bucket& bucket);
  void reserve_kept(Kept& kept);
  void take_kept(const transport::BulkTag& tag, BufferView payload);
  bool all_kept_reduced() const;
  void update_kept(Kept& kept, const Commit& commit);
  Status load_kept();
  void take_state(const transport::BulkTag& tag, BufferView payload);
  std::span<float> state_target(const StateTransfer& transfer, StatePart part);
  std::shared_ptr<MemberState> leave_state();
  void state_is_whole();

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
  Step step_;                          // being reduced
  std::optional<Commit> commit_;       // the last one, whose step is being or has been applied
  std::deque<CommittedStep> commits_;  // the last ones
  std::vector<Kept> kept_;
  std::size_t state_missing_ = 0;  // payloads of transfers that are still to come
  bool whole_ = false;             // the state is here: worth to be left behind
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
