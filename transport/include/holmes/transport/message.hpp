#pragma once

// What travels over a connection: control messages are opaque encoded bytes, bulk payloads are
// named by a tag that both ends can compute, so that a payload goes straight into the buffer that
// its receiver has reserved for it.

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "holmes/base/ids.hpp"

namespace holmes::transport {

enum class BulkKind : std::uint8_t {
  kActivation,          ///< Output of a stage for one micro-batch, to the next stage.
  kActivationGradient,  ///< Gradient of that, to the stage before.
  kGradientPartial,     ///< Sum of one node of the reduction tree, one shard, to the shard's owner.
  kTiedGradient,        ///< Reduced gradient of the tied embedding, one shard, stage 0 to last.
  kParameters,          ///< Updated parameters of one shard, owner to the replicas of its stage.
  kTiedParameters,      ///< The same for the tied embedding, last stage to stage 0.
  kState,               ///< Anything moved at a generation change.
  /// Of a Group: step is the operation's number, stage the group, micro_batch the round, layer the
  /// piece, source and destination ranks.
  kCollective,
  kReducedGradient,  ///< Of one shard, owner to the device that keeps a copy of its state.
};
constexpr BulkKind kBulkKindLast = BulkKind::kReducedGradient;

enum class DType : std::uint8_t { kF32, kBf16, kF16, kI32, kU8 };

/// Names one bulk payload. Fields that a kind does not need are zero. Unique within a generation.
struct BulkTag {
  Generation generation;
  Step step;
  BulkKind kind = BulkKind::kActivation;
  StageIndex stage;  ///< Stage that sends.
  MicroBatch micro_batch;
  LayerIndex layer;        ///< Bucket (one for each layer of a stage).
  std::uint32_t node = 0;  ///< Node of the reduction tree, or a running number.
  DeviceId source;
  DeviceId destination;

  friend auto operator<=>(const BulkTag&, const BulkTag&) = default;
};

/// "activation of step 3, micro-batch 5, stage 0 (device 1 to device 2, generation 1)": for errors.
std::string to_string(const BulkTag& tag);

/// Type and shape of a payload, checked against what the receiver reserved for.
struct TensorShape {
  DType dtype = DType::kF32;
  std::vector<std::uint32_t> dimensions;

  friend bool operator==(const TensorShape&, const TensorShape&) = default;
};

}  // namespace holmes::transport
