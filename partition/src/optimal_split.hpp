#pragma once

// SplitRule::kOptimal: what balance() is told of a plan whose shares are dealt, and the least
// memory that any execution of it needs. The simulator's memory model knows more; this refuses what
// can never fit.

#include <vector>

#include "holmes/partition/balance.hpp"
#include "holmes/partition/plan.hpp"

namespace holmes::partition {

using DeviceTable = std::vector<const Device*>;

/// Weights and gradients, 4 bytes each; two moments, sharded over the replicas; of each micro-batch
/// in flight one activation a layer. All divided by the tensor degree.
class MemoryFloor {
 public:
  /// `plan` has its shares; its blocks do not matter.
  MemoryFloor(const DeviceTable& devices, const ModelCost& model, const Plan& plan);

  BalanceStage stage(std::size_t index) const { return stages_[index]; }
  BalanceLayer layer(std::size_t stage) const { return layers_[stage]; }
  /// kInvalidArgument: which stage of `plan` is over its memory, by how much, and what helps.
  Status check(const Plan& plan) const;

 private:
  std::vector<BalanceStage> stages_;  ///< Fixed bytes, in flight, memory.
  std::vector<BalanceLayer> layers_;  ///< Of one block, by stage: data degrees differ.
};

/// `speeds`: of each stage for all micro-batches of a step, in TFLOPS.
Result<Balance> optimal_split(const ModelCost& model, const Plan& plan,
                              const std::vector<double>& speeds, const MemoryFloor& floor);

}  // namespace holmes::partition
