// What to change when a plan does not fit the memory.

#include <algorithm>

#include "holmes/partition/search.hpp"

namespace holmes::partition {
namespace {

class Remedies {
 public:
  Remedies(const Cluster& cluster, const ModelCost& model, const JobShape& job,
           const SearchOptions& options)
      : cluster_(cluster), model_(model), job_(job), options_(options) {}

  std::vector<Remedy> find() {
    SearchOptions other = options_;
    other.plan.split = SplitRule::kOptimal;
    if (options_.plan.split != SplitRule::kOptimal)
      try_one(other, job_, {"parallel.split=optimal"});
    smaller_micro_batches();
    more_stages();
    if (options_.plan.strategy != Strategy::kAuto) {
      other = options_;
      other.plan.strategy = Strategy::kAuto;
      other.plan.pipeline = other.plan.data = 0;
      try_one(other, job_, {"parallel.strategy=auto", "parallel.pipeline=0", "parallel.data=0"});
    }
    return std::move(found_);
  }

 private:
  bool try_one(const SearchOptions& options, const JobShape& job,
               std::vector<std::string> settings) {
    const auto planned = predict(cluster_, model_, job, options);
    if (!planned || !check_host_memory(planned->plan, cluster_, model_, planned->cost)) {
      return false;
    }
    found_.push_back({std::move(settings), planned->predicted.step_s});
    return true;
  }

  void smaller_micro_batches() {
    for (JobShape job = job_; --job.micro_batch > 0;) {
      if (job.batch % job.micro_batch != 0) continue;
      if (try_one(options_, job, {"train.micro_batch=" + std::to_string(job.micro_batch)})) return;
    }
  }

  void more_stages() {
    constexpr std::uint32_t kStagesTried = 16;
    const auto planned = predict(cluster_, model_, job_, options_);
    if (!planned) return;
    const auto stages = static_cast<std::uint32_t>(planned->plan.stages.size());
    SearchOptions deeper = options_;
    deeper.plan.data = 0;
    for (std::uint32_t more = stages + 1; more <= std::min(stages + kStagesTried, model_.blocks);
         ++more) {
      deeper.plan.pipeline = more;
      std::vector<std::string> settings = {"parallel.pipeline=" + std::to_string(more)};
      if (options_.plan.data != 0) settings.emplace_back("parallel.data=0");
      if (try_one(deeper, job_, std::move(settings))) return;
    }
  }

  const Cluster& cluster_;
  const ModelCost& model_;
  const JobShape& job_;
  const SearchOptions& options_;
  std::vector<Remedy> found_;
};

}  // namespace

std::vector<Remedy> memory_remedies(const Cluster& cluster, const ModelCost& model,
                                    const JobShape& job, const SearchOptions& options) {
  return Remedies(cluster, model, job, options).find();
}

}  // namespace holmes::partition
