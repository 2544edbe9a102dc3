#pragma once

// The optimal contiguous split of layers over the stages of a pipeline, by dynamic programming.
// Pure arithmetic: it knows no model, cluster or schedule; who calls it says what work, speed and
// bytes are. plan() uses it for SplitRule::kOptimal.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "holmes/base/result.hpp"

namespace holmes::partition {

struct BalanceLayer {
  double work = 0;              ///< Of one micro-batch, forward and backward.
  double bytes = 0;             ///< That lie on the stage whatever is in flight.
  double activation_bytes = 0;  ///< For each micro-batch in flight.
};

struct BalanceStage {
  double speed = 1;        ///< Work a second.
  double fixed_work = 0;   ///< Beside its layers: embedding, head.
  double fixed_s = 0;      ///< Of each micro-batch, for example a transfer that nothing hides.
  double fixed_bytes = 0;  ///< Beside its layers.
  double bytes_scale = 1;  ///< Of its layers' `bytes`: optimizer shards differ by stage.
  double in_flight = 0;    ///< Micro-batches whose activations it holds.
  double memory_bytes = std::numeric_limits<double>::infinity();
};

struct Balance {
  std::vector<std::uint32_t> counts;  ///< Layers of each stage, at least one.
  double slowest_s = 0;               ///< Of one micro-batch, the slowest stage.
  double sum_s = 0;                   ///< Of one micro-batch through all stages.
};

/// The split that minimises `steady` x slowest + sum: the time of a step of steady + 1
/// micro-batches. Each stage gets a layer, so 1 <= stages <= layers; works and bytes are finite and
/// not negative, speeds positive. kOutOfResources when no split fits the memory: which stage is
/// short, and by how much in the split that is short least.
Result<Balance> balance(std::span<const BalanceLayer> layers, std::span<const BalanceStage> stages,
                        double steady);

}  // namespace holmes::partition
