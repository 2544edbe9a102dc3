#include "holmes/actors/job_config.hpp"
#include "holmes/partition/search.hpp"

namespace holmes::actors {

Result<partition::Plan> plan_of(const JobConfig& job) {
  if (job.parallel.strategy != partition::Strategy::kAuto)
    return partition::plan(job.cluster, model_cost(job), job.train.shape, job.parallel);
  partition::SearchOptions options;
  options.cost = job.cost;
  options.plan = job.parallel;
  HOLMES_TRY_ASSIGN(auto found,
                    partition::search(job.cluster, model_cost(job), job.train.shape, options));
  return std::move(found.plan);
}

}  // namespace holmes::actors
