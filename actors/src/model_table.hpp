#pragma once

// The parameters of every layer of the model and how they are cut: what all members of a job must
// agree on without asking. Pure values; computed once by each agent.

#include <cstdint>
#include <string>
#include <vector>

#include "holmes/model/gpt.hpp"
#include "holmes/model/optimizer.hpp"
#include "holmes/partition/plan.hpp"

namespace holmes::actors {

/// Elements [begin, end) of a layer's flat array.
struct ElementRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t size() const { return end - begin; }
  bool empty() const { return begin == end; }
  friend bool operator==(const ElementRange&, const ElementRange&) = default;
};
ElementRange intersect(const ElementRange& a, const ElementRange& b);

/// Chunks [begin, end) of a layer.
struct ChunkRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

struct LayerTable {
  std::uint32_t number = 0;  ///< In the whole model: embedding 0, block i is i + 1, head last.
  std::vector<model::ParameterSpec> parameters;
  std::vector<model::Chunk> chunks;
  std::size_t elements = 0;

  /// The tensor that is the embedding's copy of the head's matrix (embedding), or that matrix
  /// itself (head); empty for other layers, and where the head is untied.
  ElementRange tied;
  /// Chunks of `owner` of `owners`.
  ChunkRange owned_chunks(std::size_t owner, std::size_t owners) const;
  /// Their elements: the owner's shard.
  ElementRange shard(std::size_t owner, std::size_t owners) const;
  /// The part of the shard that its owner updates: without the tied copy.
  ElementRange updated(std::size_t owner, std::size_t owners) const;
};

/// Tables of all layers, by number.
std::vector<LayerTable> model_table(const model::GptConfig& config);

/// Numbers of the layers that `stage` runs, in order.
std::vector<std::uint32_t> stage_layers(const partition::Plan& plan, StageIndex stage,
                                        const model::GptConfig& config);
model::LayerRange layer_range(const partition::Plan& plan, StageIndex stage);

/// Elements of the tied matrix that head owner `owner` holds, counted from the matrix's start.
ElementRange tied_part(const LayerTable& head, std::size_t owner, std::size_t owners);

/// A run of the tied matrix that one owner at the first stage and one at the last have in common;
/// elements counted from the matrix's start.
struct TiedSlice {
  std::size_t copy_owner = 0;  ///< Index in the first stage's shares.
  std::size_t head_owner = 0;  ///< Index in the last stage's shares.
  ElementRange elements;
};
/// All of them, by copy owner, then head owner.
std::vector<TiedSlice> tied_slices(const LayerTable& embedding, std::size_t copy_owners,
                                   const LayerTable& head, std::size_t head_owners);

}  // namespace holmes::actors
