#pragma once

// What a plan costs: seconds of computing for each pass, and bytes of memory for each device. Pure
// arithmetic over plan, cluster and model; time on the network is the simulator's (simulate.hpp).
//
// Compute is priced by model FLOPs (forward once, backward twice: "72-style"); the 96-style formula
// of Narayanan et al. 2021, which counts a full recompute, is used for the published TFLOPS only.
// Memory follows Korthikanti et al. 2022 (activations, recompute) and Rajbhandari et al. 2020
// (optimizer state sharded over replicas).

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "holmes/base/result.hpp"
#include "holmes/partition/plan.hpp"

namespace holmes::partition {

/// What of a block's activations is computed again in its backward pass.
enum class Recompute : std::uint8_t {
  kNone,
  kSelective,  ///< The attention scores.
  kFull,       ///< Everything but the block's input.
};
/// "none", "selective", "full".
std::string_view to_string(Recompute recompute);

enum class OptimizerKind : std::uint8_t {
  kOverlapped,  ///< Sharded; bucket by bucket behind backward and before the next forward.
  kSharded,     ///< Sharded; reduce-scatter after the last pass, all-gather before the first.
  kReplicated,  ///< All-reduce after the last pass; every replica updates everything.
};
/// "overlapped", "sharded", "replicated".
std::string_view to_string(OptimizerKind optimizer);

enum class Collective : std::uint8_t {
  kDirect,  ///< Each replica sends each owner its part: what exact sums need. One latency.
  kRing,    ///< NCCL's ring, hosts in a row: n - 1 latencies, a host sends its bytes once.
};
/// "direct", "ring".
std::string_view to_string(Collective collective);

/// How payloads between stages that are on their way at the same time share a link.
enum class LinkSharing : std::uint8_t {
  kInTurn,  ///< One after the other, each with all of it.
  kEvenly,  ///< All at once, as connections of TCP do. Collectives still take turns.
};

/// Properties of the runtime and the few constants that calibration finds. Defaults are those of
/// this project's runtime in fp32.
struct CostOptions {
  double compute_efficiency = 1;  ///< Of Device::tflops.
  /// Of goodput, by NicKind.
  std::array<double, 4> network_efficiency = {1, 1, 1, 1};
  double backward_ratio = 2;    ///< Time of a backward pass over that of a forward pass.
  double pass_overhead_us = 0;  ///< Added to each pass.
  double local_gbit_s = 2400;   ///< Between devices of one host, each device and direction.
  double local_latency_us = 5;
  double memory_gbyte_s = 10;  ///< Of a device: what bounds the optimizer.
  Recompute recompute = Recompute::kNone;
  OptimizerKind optimizer = OptimizerKind::kOverlapped;
  Collective collective = Collective::kDirect;
  bool overlapped_transfers = true;  ///< False: a device that sends waits until it is delivered.
  LinkSharing sharing = LinkSharing::kInTurn;
  bool nic_selection = true;  ///< False: everything on the fabric that all hosts have.
  bool copies = false;  ///< Memory for keepers' copies of other hosts' shards; see keepers.hpp.
  bool exact = true;    ///< Gradients by reduction leaf (buffers and partial sums), in fp32.
  std::uint32_t element_bytes = 4;  ///< 2: half precision with fp32 master weights.
  double reserved_gib = 0;          ///< Of each device, for what is not counted here.
  friend bool operator==(const CostOptions&, const CostOptions&) = default;
};
/// kInvalidArgument: which one is absurd.
Status validate(const CostOptions& options);
/// Whether someone has measured: efficiencies of 1 are what nothing reaches.
bool calibrated(const CostOptions& options);
/// Of an activation between stages, one sample: ModelCost counts elements of 4 bytes.
double edge_bytes(const ModelCost& model, const CostOptions& options);

/// Model costs at the speed that was measured instead of counted: forward seconds of one sample on
/// a device of `tflops`.
struct MeasuredLayers {
  double tflops = 0;
  double block_s = 0;
  double embedding_s = 0;
  double head_s = 0;
};
ModelCost with_measured(ModelCost model, const MeasuredLayers& measured);

/// Floating-point operations of one sample as the paper counts them (96-style), and those that are
/// really needed (72-style).
double paper_flops(const ModelCost& model);
double model_flops(const ModelCost& model);

/// Blocks of `chunk` (0 unless interleaved) of a stage: as equal as possible, the first ones more.
std::uint32_t chunk_blocks(const Plan& plan, StageIndex stage, std::uint32_t chunk);

/// Seconds of one micro-batch on one replica, by layer.
struct LayerTimes {
  double block_forward_s = 0;
  double block_backward_s = 0;  ///< With what is computed again.
  double embedding_forward_s = 0;
  double head_forward_s = 0;
  double overhead_s = 0;  ///< Of each pass.
  double backward_ratio = 2;
};
/// `tflops` of one device; `tensor` devices share each layer and exchange its activations.
LayerTimes layer_times(const ModelCost& model, const JobShape& job, double tflops,
                       std::uint32_t tensor, const CostOptions& options);

/// Parameters of a stage, on each of its tensor ranks.
double stage_parameters(const Plan& plan, const ModelCost& model, StageIndex stage);

struct MemoryUse {
  double weights = 0;  ///< Bytes, all of them.
  double gradients = 0;
  double optimizer = 0;
  double activations = 0;
  double buffers = 0;
  double copies = 0;  ///< Of other hosts' shards, and what keeping them takes.
  double reserved = 0;
  double total() const {
    return weights + gradients + optimizer + activations + buffers + copies + reserved;
  }
};
/// Of each device of a share of a stage; exact: what training reserves, all other replicas on other
/// hosts.
MemoryUse memory_use(const Plan& plan, const ModelCost& model, StageIndex stage, const Share& share,
                     const CostOptions& options);

/// The device whose memory is short by most; total() <= memory: nothing is short.
struct MemoryShort {
  StageIndex stage;
  DeviceId device;
  MemoryUse use;
  double memory = 0;  ///< Bytes that the device has.
  double missing() const { return use.total() - memory; }
};
MemoryShort tightest(const Plan& plan, const Cluster& cluster, const ModelCost& model,
                     const CostOptions& options);
/// kInvalidArgument: which device of which stage needs and has how much, and what it needs it for.
Status check_memory(const Plan& plan, const Cluster& cluster, const ModelCost& model,
                    const CostOptions& options);

/// Training takes the memory of a host's devices as one; a host that does not train needs nothing.
struct HostMemory {
  MemoryUse use;
  double memory = 0;  ///< Of all its devices.
  double missing() const { return use.total() - memory; }
};
std::vector<HostMemory> memory_by_host(const Plan& plan, const Cluster& cluster,
                                       const ModelCost& model, const CostOptions& options);
/// kInvalidArgument: which host is short by most, by how much, and what it needs it for.
Status check_host_memory(const Plan& plan, const Cluster& cluster, const ModelCost& model,
                         const CostOptions& options);

}  // namespace holmes::partition
