#pragma once

// Strong integer ids: a HostId cannot be passed where a StageIndex is meant.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace holmes {

template <class Tag, class Rep = std::uint32_t>
class Id {
 public:
  using rep = Rep;

  constexpr Id() = default;
  constexpr explicit Id(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  /// For indexing a container that has one element for each id.
  constexpr std::size_t index() const { return static_cast<std::size_t>(value_); }

  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  Rep value_ = 0;
};

using HostId = Id<struct HostIdTag>;      ///< Index of a host in the cluster description.
using NicId = Id<struct NicIdTag>;        ///< Index of a NIC on its host.
using DeviceId = Id<struct DeviceIdTag>;  ///< Index of a device in the whole cluster (its rank).
using FabricId = Id<struct FabricIdTag>;  ///< Index of a fabric in the cluster description.
using StageIndex = Id<struct StageIndexTag>;     ///< Position of a stage in the pipeline.
using LayerIndex = Id<struct LayerIndexTag>;     ///< Position of a layer in the whole model.
using LeafIndex = Id<struct LeafIndexTag>;       ///< Leaf of the gradient reduction tree.
using MicroBatch = Id<struct MicroBatchTag>;     ///< Micro-batch of a step, 0-based.
using Step = Id<struct StepTag, std::uint64_t>;  ///< Optimizer update, 0-based.
using Generation = Id<struct GenerationTag, std::uint64_t>;  ///< Number of the plan in force.
using Epoch = Id<struct EpochTag, std::uint64_t>;  ///< Number of the coordinator in charge.

}  // namespace holmes

template <class Tag, class Rep>
struct std::hash<holmes::Id<Tag, Rep>> {
  std::size_t operator()(holmes::Id<Tag, Rep> id) const noexcept {
    return std::hash<Rep>{}(id.value());
  }
};
