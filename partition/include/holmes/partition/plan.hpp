#pragma once

// A plan says who trains what over which NICs: an immutable value that coordinator, agents and
// simulator share. plan() is a pure function of its arguments.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "holmes/base/ids.hpp"
#include "holmes/base/result.hpp"
#include "holmes/partition/cluster.hpp"

namespace holmes::partition {

/// What the planner must know of a model: costs, no tensors. Block i is one transformer layer.
struct ModelCost {
  std::uint32_t blocks = 0;
  double block_flops = 0;  ///< Forward, one sample.
  double embedding_flops = 0;
  double head_flops = 0;
  std::uint64_t block_parameters = 0;
  std::uint64_t embedding_parameters = 0;
  std::uint64_t head_parameters = 0;
  std::uint64_t edge_bytes = 0;  ///< Activation between stages, one sample.
  double attention_flops = 0;    ///< Part of block_flops that selective recompute does again.
  std::uint64_t block_stash_bytes = 0;      ///< Kept of a block for its backward pass, one sample.
  std::uint64_t block_selective_bytes = 0;  ///< The same with selective recompute.
  std::uint64_t head_stash_bytes = 0;
  /// The embedding's table is a copy of the head's; else each has its own values.
  bool tied_head = true;
  /// Parameters of the table that embedding and head share; 0: untied.
  std::uint64_t tied_parameters() const {
    return tied_head ? std::min(embedding_parameters, head_parameters) : 0;
  }
  friend bool operator==(const ModelCost&, const ModelCost&) = default;
};

/// Constants of a job that shape its plan (never those of the cluster).
struct JobShape {
  std::uint32_t batch = 8;             ///< Samples of a step.
  std::uint32_t micro_batch = 1;       ///< Samples of a micro-batch.
  std::uint32_t reduction_leaves = 0;  ///< 0: the default of default_reduction_leaves().
  std::uint32_t micro_batch_count() const { return batch / micro_batch; }
  friend bool operator==(const JobShape&, const JobShape&) = default;
};
/// The largest power of two that divides batch / micro_batch, at most 8.
std::uint32_t default_reduction_leaves(const JobShape& job);
/// The shape with reduction_leaves resolved. kInvalidArgument: what does not divide what.
Result<JobShape> checked_shape(JobShape job);

/// kAuto: the best plan that the cost model finds; the last three: baselines (search.hpp).
enum class Strategy : std::uint8_t {
  kMegatron,
  kHolmes,
  kAuto,
  kMegatronLm,
  kMegatronDeepspeed,
  kMegatronLlama,
};
constexpr Strategy kStrategyLast = Strategy::kMegatronLlama;
enum class ScheduleKind : std::uint8_t { k1F1B, kGPipe, kInterleaved, kZeroBubble, kNetworkAware };
constexpr ScheduleKind kScheduleLast = ScheduleKind::kNetworkAware;
/// Names in files and messages: "megatron", "holmes", "auto", "megatron-lm", "megatron-deepspeed",
/// "megatron-llama"; "1f1b", "gpipe", "interleaved", "zero-bubble", "network-aware".
std::string_view to_string(Strategy strategy);
std::string_view to_string(ScheduleKind schedule);

/// How blocks are dealt to stages: the strategy's own rule (megatron: equal; holmes: the paper's
/// formula), or one that was asked for. kOptimal minimises the step by dynamic programming
/// (balance.hpp), embedding, head and memory counted.
enum class SplitRule : std::uint8_t { kDefault, kEqual, kFormula, kOptimal };
/// "default", "equal", "formula", "optimal".
std::string_view to_string(SplitRule rule);

/// What a generated order may do (order.hpp); schedule network-aware only.
struct OrderOptions {
  std::uint32_t in_flight_max = 0;  ///< Micro-batches that a replica may hold; 0: its memory's.
  bool split_backward = false;      ///< Input and weight parts of backward passes on their own.
  std::uint32_t chunks = 1;         ///< Above 1: so many chunks a stage are tried as well.
  friend bool operator==(const OrderOptions&, const OrderOptions&) = default;
};

struct PlanOptions {
  Strategy strategy = Strategy::kHolmes;
  ScheduleKind schedule = ScheduleKind::k1F1B;
  std::uint32_t pipeline = 0;  ///< 0: one stage for each cluster (holmes), else what was asked.
  std::uint32_t data = 0;      ///< 0: devices / pipeline.
  double alpha = 1.0;          ///< Of the paper's partition formula.
  std::uint32_t tensor = 1;    ///< Devices of one host that share each layer.
  SplitRule split = SplitRule::kDefault;
  std::uint32_t chunks = 2;  ///< Schedule interleaved: runs of blocks that each stage has.
  OrderOptions order = {};   ///< Schedule network-aware.
};

/// A run of leaves [first, last] that one replica computes.
struct LeafRange {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  friend bool operator==(const LeafRange&, const LeafRange&) = default;
};
/// One replica of a stage: a device, or with tensor parallelism the devices of one host that share
/// each layer.
struct Share {
  DeviceId device;  ///< The first of them.
  LeafRange leaves;
  std::vector<DeviceId> peers = {};  ///< The others, in tensor order; tensor degree - 1.
  /// Schedule network-aware: a letter for each pass of a step (letter_of() in schedule.hpp). The
  /// passes of one kind go through the micro-batches in ascending order.
  std::string order = {};
  /// First stage: its first forward of a step waits so long, so that replicas which share a slow
  /// link use it in turn.
  std::uint32_t offset_us = 0;
  /// `device`, then `peers`: position in it is the tensor rank.
  std::vector<DeviceId> devices() const;
  friend bool operator==(const Share&, const Share&) = default;
};

struct StagePlan {
  std::uint32_t first_block = 0;  ///< Blocks [first_block, last_block]; the first stage also has
  std::uint32_t last_block = 0;   ///< the embedding, the last one the head.
  std::vector<Share> shares;      ///< In leaf order; together they cover all leaves once.
  friend bool operator==(const StagePlan&, const StagePlan&) = default;
};

enum class GroupKind : std::uint8_t {
  kData,    ///< Devices of one tensor rank in all replicas of one stage.
  kTied,    ///< The same of first and last stage: they exchange a tied embedding.
  kVote,    ///< All members: the exchange of gradient norms that commits a step.
  kTensor,  ///< Devices of one replica that share each layer; none when the tensor degree is 1.
};
/// "data", "tied", "vote", "tensor".
std::string_view to_string(GroupKind kind);
struct Group {
  GroupKind kind = GroupKind::kData;
  std::vector<DeviceId> devices;
  std::vector<FabricId> paths;  ///< Fabrics in the order in which they are tried; empty: one host.
  std::string reason;           ///< Why this fabric, for people.
  friend bool operator==(const Group&, const Group&) = default;
};
struct Edge {
  StageIndex from_stage;
  StageIndex to_stage;
  std::vector<FabricId> paths;
  std::string reason;
  friend bool operator==(const Edge&, const Edge&) = default;
};

struct Plan {
  Strategy strategy = Strategy::kHolmes;
  ScheduleKind schedule = ScheduleKind::k1F1B;
  JobShape job;  ///< With reduction_leaves resolved.
  std::vector<StagePlan> stages;
  std::vector<Group> groups;
  std::vector<Edge> edges;
  /// Devices of each share. Stages and simulator know any degree, the runtime only 1.
  std::uint32_t tensor = 1;
  std::uint32_t chunks = 1;  ///< Above 1 with schedules interleaved and network-aware only.
  friend bool operator==(const Plan&, const Plan&) = default;

  /// An empty plan stops the job: nobody trains.
  bool empty() const { return stages.empty(); }
  std::uint32_t leaf_of(MicroBatch micro_batch) const;
  /// Who computes `micro_batch` at `stage`: the first device of the share.
  DeviceId owner(StageIndex stage, MicroBatch micro_batch) const;
  /// Micro-batches of `device` (any of its share) at `stage`, ascending.
  std::vector<MicroBatch> micro_batches(StageIndex stage, DeviceId device) const;
  /// All devices that train, by stage, then leaf order, then tensor rank: their index here is the
  /// member number.
  std::vector<DeviceId> members() const;
};

/// kInvalidArgument says which degree does not divide what, or which hosts share no fabric.
Result<Plan> plan(const Cluster& cluster, const ModelCost& model, const JobShape& job,
                  const PlanOptions& options);

/// What actors can execute today: tensor degree 1, schedules of whole backward passes without
/// chunks. kInvalidArgument that says what to change.
Status check_runnable(const Plan& plan);

/// What every plan must satisfy, whoever made it: called on plans that come over the wire too.
/// With an untied head there are no tied groups.
Status validate(const Plan& plan, const Cluster& cluster, std::uint32_t blocks,
                bool tied_head = true);

/// Human text: stages, groups, edges, and why.
std::string explain(const Plan& plan, const Cluster& cluster);

}  // namespace holmes::partition
