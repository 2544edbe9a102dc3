#include "holmes/partition/order.hpp"

#include <algorithm>
#include <optional>

#include "holmes/base/assert.hpp"
#include "holmes/partition/simulate.hpp"
#include "schedule/generate.hpp"
#include "schedule/pipeline_of.hpp"

namespace holmes::partition {
namespace {

/// Passes that the tries of one call play, and those that it simulates in full.
constexpr std::size_t kPlayedMax = 200'000;
constexpr std::size_t kSimulatedMax = 100'000;
constexpr std::size_t kSimulationsMin = 3;
constexpr std::size_t kSimulationsMax = 200;
/// Steps that differ by less are alike; then fewer activations decide.
constexpr double kAlike = 1e-9;
constexpr double kMicro = 1e-6;
/// Of an offset: nobody waits a minute for a link.
constexpr double kOffsetMaxUs = 60e6;

class Best {
 public:
  Best(const Cluster& cluster, const ModelCost& model, const CostOptions& cost)
      : cluster_(cluster), model_(model) {
    how_.cost = cost;
  }

  Status consider(const Plan& plan) {
    HOLMES_TRY_ASSIGN(const Simulation simulation, simulate(plan, cluster_, model_, how_));
    std::size_t held = 0;
    for (std::uint32_t s = 0; s < plan.stages.size(); ++s) {
      for (const Share& share : plan.stages[s].shares) {
        held += in_flight_max(plan, StageIndex(s), share.device);
      }
    }
    const bool alike = best_ && simulation.step_s <= step_s_ * (1 + kAlike);
    if (best_ && simulation.step_s >= step_s_ * (1 - kAlike) && !(alike && held < held_)) return {};
    best_ = plan;
    step_s_ = simulation.step_s;
    held_ = held;
    return {};
  }
  const std::optional<Plan>& plan() const { return best_; }

 private:
  const Cluster& cluster_;
  const ModelCost& model_;
  SimulateOptions how_;
  std::optional<Plan> best_;
  double step_s_ = 0;
  std::size_t held_ = 0;
};

bool chunks_fit(Plan plan, std::uint32_t chunks) {
  plan.schedule = ScheduleKind::kInterleaved;
  plan.chunks = chunks;
  return plan.stages.size() > 1 && bool(check_schedule(plan));
}

Status order_with_chunks(const Cluster& cluster, const ModelCost& model, const CostOptions& cost,
                         const OrderOptions& options, Plan plan, Best& best) {
  const Pipeline pipeline = pipeline_of(plan, cluster, model, cost, options);
  const auto found = generate(pipeline, {options.split_backward, kPlayedMax});
  // Units of chunks come in rounds, which may need more than devices can hold.
  HOLMES_ASSERT(!found.empty() || plan.chunks > 1, "one micro-batch at a time always is an order");
  const std::size_t affordable =
      std::clamp(kSimulatedMax / pipeline.pass_count(), kSimulationsMin, kSimulationsMax);
  for (std::size_t i = 0; i < std::min(found.size(), affordable); ++i) {
    put_orders(found[i].orders, plan);
    HOLMES_TRY(best.consider(plan));
  }
  return {};
}

/// Seconds that a payload which is alone keeps the slowest channel between two stages busy.
double payload_s(const Pipeline& pipeline) {
  double longest_s = 0;
  for (const Pipeline::Way& way : pipeline.ways) {
    for (const auto& part : way.parts) longest_s = std::max(longest_s, part.busy_s);
  }
  return longest_s;
}

/// Where payloads share links evenly: replicas begin one after another, so that each has the link
/// to itself for its payloads.
Status stagger(const Pipeline& pipeline, Plan plan, Best& best) {
  const double alone_s = payload_s(pipeline);
  for (const double part : {1.0, 0.5, 2.0, 0.25}) {
    const double offset_us = part * alone_s / kMicro;
    double at_us = 0;
    for (Share& share : plan.stages.front().shares) {
      if (at_us > kOffsetMaxUs) return {};
      share.offset_us = static_cast<std::uint32_t>(at_us);
      at_us += offset_us;
    }
    HOLMES_TRY(best.consider(plan));
  }
  return {};
}

}  // namespace

Status order_passes(const Cluster& cluster, const ModelCost& model, const CostOptions& cost,
                    const OrderOptions& options, Plan& plan) {
  HOLMES_TRY(validate(cost));
  HOLMES_ASSERT(!plan.empty(), "an empty plan has nothing to order");
  plan.schedule = ScheduleKind::kNetworkAware;
  plan.chunks = 1;
  for (Share& share : plan.stages.front().shares) share.offset_us = 0;
  Best best(cluster, model, cost);
  HOLMES_TRY(order_with_chunks(cluster, model, cost, options, plan, best));
  if (options.chunks > 1 && chunks_fit(plan, options.chunks)) {
    Plan chunked = plan;
    chunked.chunks = options.chunks;
    HOLMES_TRY(order_with_chunks(cluster, model, cost, options, chunked, best));
  }
  if (cost.sharing == LinkSharing::kEvenly && plan.stages.front().shares.size() > 1) {
    const Plan ordered = *best.plan();
    HOLMES_TRY(stagger(pipeline_of(ordered, cluster, model, cost, options), ordered, best));
  }
  plan = *best.plan();
  return {};
}

}  // namespace holmes::partition
