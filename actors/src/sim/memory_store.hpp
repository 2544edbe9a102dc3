#pragma once

// A StateStore in memory, for simulation and tests: checkpoints live as long as it does. Shared by
// all hosts of a simulated world; one thread.

#include <map>

#include "state_store.hpp"

namespace holmes::actors {

class MemoryStore final : public StateStore {
 public:
  /// State of one layer: all elements.
  struct LayerValues {
    std::vector<float> parameters;
    std::vector<float> exp_avg;
    std::vector<float> exp_avg_sq;
    friend bool operator==(const LayerValues&, const LayerValues&) = default;
  };
  using Model = std::map<std::uint32_t, LayerValues>;  ///< By layer number.

  Status load(const std::string& folder, std::span<const LayerState> layers) override;
  Result<std::vector<SavedFile>> save(const SaveRequest& request) override;
  Result<std::string> publish(Step step, const std::vector<SavedFile>& files) override;

  /// The published checkpoint of `step` updates; null when there is none.
  const Model* checkpoint(Step step) const;
  static std::string folder(Step step) { return "memory/step-" + std::to_string(step.value()); }

  /// From now on there is no room for another checkpoint.
  void fill_disk() { full_ = true; }

 private:
  std::map<Step, Model> unfinished_;
  std::map<std::string, Model> published_;
  bool full_ = false;
};

}  // namespace holmes::actors
