#pragma once

// Where replicas load their state from and save it to, and the coordinator publishes it. Called on
// the disk queue, never on an actor's thread; in simulation files are replaced by memory.

#include <span>
#include <string>
#include <vector>

#include "messages.hpp"
#include "model_table.hpp"

namespace holmes::actors {

/// The state of one layer that a replica has: all parameters, the moments of its shard.
template <class Float>
struct BasicLayerState {
  const LayerTable* table = nullptr;
  std::span<Float> parameters;
  ElementRange shard;
  std::span<Float> exp_avg;     ///< shard.size() elements
  std::span<Float> exp_avg_sq;  ///< shard.size() elements
};
using LayerState = BasicLayerState<float>;
using LayerSnapshot = BasicLayerState<const float>;

/// What one replica saves.
struct SaveRequest {
  Step step;  ///< Updates that the state holds.
  std::size_t stage = 0;
  std::size_t stage_count = 0;
  std::size_t member = 0;
  std::size_t member_count = 0;
  bool writes_parameters = false;     ///< One replica of each stage does.
  std::vector<LayerSnapshot> layers;  ///< Unchanged until save() returns.
};

class StateStore {
 public:
  virtual ~StateStore() = default;
  /// Fills the states of all `layers` from the checkpoint in `folder`.
  virtual Status load(const std::string& folder, std::span<const LayerState> layers) = 0;
  /// Writes and syncs this replica's files of the checkpoint.
  virtual Result<std::vector<SavedFile>> save(const SaveRequest& request) = 0;
  /// Makes the checkpoint of `step` updates from all members' files the newest; returns its folder.
  /// Only the coordinator does.
  virtual Result<std::string> publish(Step step, const std::vector<SavedFile>& files) = 0;
};

}  // namespace holmes::actors
