#include "holmes/partition/simulate.hpp"

#include <cmath>

#include "holmes/base/assert.hpp"
#include "simulate/engine.hpp"
#include "text.hpp"

namespace holmes::partition {
namespace {

constexpr double kTera = 1e12;
constexpr std::uint32_t kStepsMax = 10000;

Error invalid(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

Status check(const Cluster& cluster, const SimulateOptions& options) {
  HOLMES_TRY(validate(options.cost));
  if (options.steps == 0 || options.steps > kStepsMax) {
    return invalid("simulate: " + std::to_string(options.steps) + " steps; between 1 and " +
                   std::to_string(kStepsMax) + " can be simulated");
  }
  if (options.cost.sharing == LinkSharing::kEvenly &&
      (!options.cost.overlapped_transfers || !options.changes.empty())) {
    return invalid(
        "simulate: links shared evenly can be simulated with overlapped transfers and without "
        "changes only");
  }
  for (const SpeedChange& change : options.changes) {
    const std::size_t count = change.what == SpeedChange::What::kFabric ? cluster.fabrics.size()
                              : change.what == SpeedChange::What::kLink ? cluster.links.size()
                                                                        : cluster.hosts.size();
    if (change.index >= count) return invalid("simulate: a change of something that is not there");
    const bool sane = std::isfinite(change.at_s) && change.at_s >= 0 &&
                      std::isfinite(change.factor) && change.factor > 1e-6 && change.factor < 1e6;
    if (!sane) {
      return invalid("simulate: a change at " + number(change.at_s) + " s to " +
                     number(change.factor) + " of the speed makes no sense");
    }
  }
  return {};
}

}  // namespace

Result<Simulation> simulate(const Plan& plan, const Cluster& cluster, const ModelCost& model,
                            const SimulateOptions& options) {
  HOLMES_ASSERT(!plan.empty(), "an empty plan trains nothing");
  HOLMES_TRY(check(cluster, options));
  Simulation result = Engine(plan, cluster, model, options).run();
  double devices = 0;
  for (const StagePlan& stage : plan.stages) {
    devices += 1.0 * static_cast<double>(stage.shares.size()) * plan.tensor;
  }
  const double batch = plan.job.batch;
  result.samples_per_s = batch / result.step_s;
  result.tflops_per_device = result.samples_per_s * paper_flops(model) / devices / kTera;
  result.model_tflops_per_device = result.samples_per_s * model_flops(model) / devices / kTera;
  return result;
}

}  // namespace holmes::partition
