#include <cmath>

#include "holmes/base/assert.hpp"
#include "holmes/partition/cost.hpp"
#include "text.hpp"

namespace holmes::partition {
namespace {

constexpr double kTera = 1e12;
constexpr double kGigabitBytes = 1e9 / 8;
constexpr double kMicro = 1e-6;
constexpr double kModelElementBytes = 4;
constexpr double kBackward = 2;  // model FLOPs of a backward pass over those of a forward pass
constexpr double kBackwardWithRecompute = 3;

Status check(const char* name, double value, double min, double max) {
  if (std::isfinite(value) && value >= min && value <= max) return {};
  return Error(ErrorCode::kInvalidArgument, std::string("cost model: ") + name + " = " +
                                                number(value) + " must lie between " + number(min) +
                                                " and " + number(max));
}

/// Two all-reduces of the activations of a micro-batch, as a ring inside the host (Shoeybi et al.
/// 2019: two a block in each direction).
double tensor_exchange_s(const ModelCost& model, const JobShape& job, std::uint32_t tensor,
                         const CostOptions& options) {
  if (tensor == 1) return 0;
  const double bytes = job.micro_batch * edge_bytes(model, options);
  const double share = 2.0 * (tensor - 1) / tensor;
  const double latency = 2.0 * (tensor - 1) * options.local_latency_us * kMicro;
  return 2 * (share * bytes / (options.local_gbit_s * kGigabitBytes) + latency);
}

}  // namespace

std::string_view to_string(Recompute recompute) {
  constexpr std::string_view kNames[] = {"none", "selective", "full"};
  return kNames[static_cast<std::size_t>(recompute)];
}

std::string_view to_string(OptimizerKind optimizer) {
  constexpr std::string_view kNames[] = {"overlapped", "sharded", "replicated"};
  return kNames[static_cast<std::size_t>(optimizer)];
}

std::string_view to_string(Collective collective) {
  return collective == Collective::kDirect ? "direct" : "ring";
}

Status validate(const CostOptions& options) {
  HOLMES_TRY(check("compute_efficiency", options.compute_efficiency, 1e-6, 10));
  for (const double efficiency : options.network_efficiency) {
    HOLMES_TRY(check("network_efficiency", efficiency, 1e-6, 10));
  }
  HOLMES_TRY(check("backward_ratio", options.backward_ratio, 0.1, 10));
  HOLMES_TRY(check("pass_overhead_us", options.pass_overhead_us, 0, 1e9));
  HOLMES_TRY(check("local_gbit_s", options.local_gbit_s, 1e-6, 1e6));
  HOLMES_TRY(check("local_latency_us", options.local_latency_us, 0, 1e7));
  HOLMES_TRY(check("memory_gbyte_s", options.memory_gbyte_s, 1e-6, 1e6));
  HOLMES_TRY(check("element_bytes", options.element_bytes, 1, 8));
  return check("reserved_gib", options.reserved_gib, 0, 1e6);
}

bool calibrated(const CostOptions& options) {
  const CostOptions untouched;
  return options.compute_efficiency != untouched.compute_efficiency ||
         options.network_efficiency != untouched.network_efficiency ||
         options.pass_overhead_us != untouched.pass_overhead_us;
}

double edge_bytes(const ModelCost& model, const CostOptions& options) {
  return static_cast<double>(model.edge_bytes) * options.element_bytes / kModelElementBytes;
}

ModelCost with_measured(ModelCost model, const MeasuredLayers& measured) {
  HOLMES_ASSERT(measured.tflops > 0 && measured.block_s > 0, "a measured block takes time");
  const double flops_s = measured.tflops * kTera;
  const double attention = model.attention_flops / model.block_flops;
  model.block_flops = measured.block_s * flops_s;
  model.attention_flops = attention * model.block_flops;
  model.embedding_flops = measured.embedding_s * flops_s;
  model.head_flops = measured.head_s * flops_s;
  return model;
}

double paper_flops(const ModelCost& model) {
  return (kBackwardWithRecompute + 1) * model.blocks * model.block_flops +
         (kBackward + 1) * model.head_flops;
}

double model_flops(const ModelCost& model) {
  return (kBackward + 1) *
         (model.blocks * model.block_flops + model.head_flops + model.embedding_flops);
}

std::uint32_t chunk_blocks(const Plan& plan, StageIndex stage, std::uint32_t chunk) {
  HOLMES_ASSERT(stage.index() < plan.stages.size() && chunk < plan.chunks, "no such chunk");
  const StagePlan& at = plan.stages[stage.index()];
  const std::uint32_t blocks = at.last_block - at.first_block + 1;
  return blocks / plan.chunks + (chunk < blocks % plan.chunks ? 1 : 0);
}

LayerTimes layer_times(const ModelCost& model, const JobShape& job, double tflops,
                       std::uint32_t tensor, const CostOptions& options) {
  HOLMES_ASSERT(tflops > 0 && tensor > 0, "a replica computes");
  const double flops_s = tflops * kTera * options.compute_efficiency * tensor;
  const double samples_s = job.micro_batch / flops_s;
  const double exchange_s = tensor_exchange_s(model, job, tensor, options);
  LayerTimes times;
  times.block_forward_s = model.block_flops * samples_s + exchange_s;
  double again_s = 0;
  if (options.recompute == Recompute::kSelective) again_s = model.attention_flops * samples_s;
  if (options.recompute == Recompute::kFull) again_s = times.block_forward_s;
  times.block_backward_s =
      options.backward_ratio * model.block_flops * samples_s + exchange_s + again_s;
  times.embedding_forward_s = model.embedding_flops * samples_s;
  times.head_forward_s = model.head_flops * samples_s;
  times.overhead_s = options.pass_overhead_us * kMicro;
  times.backward_ratio = options.backward_ratio;
  return times;
}

}  // namespace holmes::partition
