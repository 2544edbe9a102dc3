#pragma once

// AdamW with decoupled decay (Loshchilov, Hutter 2019), gradient clipping by global norm, and the
// learning-rate schedule. All element-wise work is on spans, so that an owner updates just its
// shard.

#include <cstdint>
#include <span>
#include <vector>

#include "holmes/model/layer.hpp"

namespace holmes::model {

/// Elements of one chunk: gradients' squares are summed chunk by chunk, and shards are cut at the
/// ends of chunks, so that norms do not depend on who owns what.
constexpr std::size_t kChunkElements = 64 * 1024;

/// A run of elements of one tensor within a layer's flat array.
struct Chunk {
  std::size_t offset = 0;
  std::size_t count = 0;
  bool decay = false;
  bool tied_copy = false;  ///< Of the embedding's copy: counts in no norm, is never updated itself.
};
/// The chunks of a layer, in element order: no chunk spans two tensors.
std::vector<Chunk> chunks_of(const std::vector<ParameterSpec>& parameters);

struct AdamW {
  float beta1 = 0.9F;
  float beta2 = 0.95F;
  float epsilon = 1e-8F;
  float weight_decay = 0.1F;
};

/// Of one update.
struct AdamWStep {
  std::uint64_t step = 0;  ///< From 0: bias correction uses step + 1.
  float learning_rate = 0;
  float gradient_scale = 1;
  bool decay = false;
};
/// All of one size; gradients are read, the rest is changed in place.
struct AdamWArrays {
  std::span<float> parameters = {};
  std::span<const float> gradients = {};
  std::span<float> exp_avg = {};
  std::span<float> exp_avg_sq = {};
};

/// destination[i] += source[i].
void add(std::span<float> destination, std::span<const float> source);

/// Sum of squares in double, in a fixed order that depends on the number of elements only.
double sum_of_squares(std::span<const float> values);

/// Factor that scales gradients to a norm of at most `max_norm`; 1 when max_norm is 0 (off).
float clip_factor(double norm, double max_norm);

/// One update in place. `step` counts from 0 (bias correction uses step + 1).
void adamw(const AdamW& config, std::uint64_t step, float learning_rate, float gradient_scale,
           bool decay, std::span<float> parameters, std::span<const float> gradients,
           std::span<float> exp_avg, std::span<float> exp_avg_sq);

struct LearningRate {
  float peak = 1e-3F;
  float floor = 1e-4F;
  std::uint64_t warmup_steps = 0;
  std::uint64_t decay_steps = 0;  ///< End of the cosine; the floor holds from there on.
};
/// Linear warm-up to the peak, cosine to the floor.
float learning_rate(const LearningRate& schedule, std::uint64_t step);

}  // namespace holmes::model
