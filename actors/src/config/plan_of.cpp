#include "holmes/actors/job_config.hpp"
#include "holmes/partition/order.hpp"
#include "holmes/partition/search.hpp"

namespace holmes::actors {

Result<partition::Plan> plan_of(const JobConfig& job) {
  if (job.parallel.strategy != partition::Strategy::kAuto) {
    const auto model = model_cost(job);
    HOLMES_TRY_ASSIGN(auto plan,
                      partition::plan(job.cluster, model, job.train.shape, job.parallel));
    // plan() knows no calibrated costs; as predict() orders.
    const auto cost = partition::execution_of(job.parallel.strategy, job.cost);
    if (plan.schedule == partition::ScheduleKind::kNetworkAware)
      HOLMES_TRY(partition::order_passes(job.cluster, model, cost, job.parallel.order, plan));
    return plan;
  }
  partition::SearchOptions options;
  options.cost = job.cost;
  options.plan = job.parallel;
  HOLMES_TRY_ASSIGN(auto found,
                    partition::search(job.cluster, model_cost(job), job.train.shape, options));
  return std::move(found.plan);
}

}  // namespace holmes::actors
