#pragma once

// Strategy auto: the plan with the shortest step that the simulator can find, over placement,
// pipeline and data degree, split, schedule and recompute, within the devices' memory. Candidates
// are tried in the order of a lower bound of their step, until no bound is below the best step
// found: on a few devices that is the optimum of everything that is enumerated there. And the
// baselines: how published systems place, schedule and choose NICs (Shoeybi et al. 2019,
// Rasley et al. 2020, Megatron-LLaMA 2023), priced by the same cost model.
//
// Job constants (micro-batch, reduction leaves, tensor degree) are not searched.

#include <cstdint>
#include <string>
#include <vector>

#include "holmes/partition/cost.hpp"
#include "holmes/partition/simulate.hpp"

namespace holmes::partition {

/// How a strategy runs what it has planned: the baselines know one fabric for all that crosses
/// hosts and exchange in half precision by rings, as those systems do; megatron-lm sums gradients
/// by all-reduce, megatron-deepspeed shards the optimizer without overlap. To compare placements
/// alone, `base` has the same precision and collective.
CostOptions execution_of(Strategy strategy, CostOptions base);

struct SearchOptions {
  CostOptions cost;
  PlanOptions plan;        ///< Degrees that are not 0 are kept; tensor is; so is SplitRule::kEqual.
  bool executable = true;  ///< Only schedules that training can run.
  bool any_recompute = false;  ///< More recompute where memory is short.
  bool order = true;           ///< Generates an order for the best plan (order.hpp).
};

/// Something that the search looked at, and its step.
struct Alternative {
  std::string what;  ///< In which way it differs from the best: "4 stages", "schedule gpipe".
  double step_s = 0;
};

struct Searched {
  Plan plan;
  CostOptions cost;  ///< With the recompute that was chosen.
  Simulation predicted;
  std::vector<Alternative> runners_up;  ///< The best for each way to differ.
  std::size_t considered = 0;
  std::size_t simulated = 0;
};

/// kInvalidArgument: what is wrong with the input, or how much memory is missing and where in the
/// plan that lacks least.
Result<Searched> search(const Cluster& cluster, const ModelCost& model, const JobShape& job,
                        const SearchOptions& options);

/// A change to a job with which its plan fits the hosts' memory.
struct Remedy {
  std::vector<std::string> settings;  ///< "train.micro_batch=2"
  double step_s = 0;                  ///< Predicted.
};
/// The nearest ones, of each kind the one that changes least: another split, smaller micro-batches,
/// more stages, what auto finds. None: nothing that was tried fits.
std::vector<Remedy> memory_remedies(const Cluster& cluster, const ModelCost& model,
                                    const JobShape& job, const SearchOptions& options);

/// Any strategy: its plan, how it runs, and its simulated step.
Result<Searched> predict(const Cluster& cluster, const ModelCost& model, const JobShape& job,
                         const SearchOptions& options);

}  // namespace holmes::partition
