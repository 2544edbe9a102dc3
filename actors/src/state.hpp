#pragma once

// The state of training as it outlives a generation: which device holds what of it, and what must
// move before the next generation begins. Values.
//
// A piece is a run of elements of one layer with all that an update needs: parameters and moments.
// Every piece is held twice, by the owner of the shard and by its keeper on another
// host.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "holmes/base/buffer.hpp"
#include "holmes/base/ids.hpp"
#include "holmes/model/optimizer.hpp"
#include "holmes/transport/message.hpp"
#include "model_table.hpp"

namespace holmes::actors {

/// How a job updates its parameters.
struct UpdateRule {
  model::AdamW optimizer;
  model::LearningRate learning_rate;
  float clip_norm = 0;
};

/// What one update reads and writes. Each array begins at that element of the layer.
struct UpdateArrays {
  std::span<float> parameters;
  std::size_t parameters_begin = 0;
  std::span<const float> gradient;
  std::size_t gradient_begin = 0;
  std::span<float> exp_avg;
  std::span<float> exp_avg_sq;
  std::size_t moments_begin = 0;
};
/// AdamW on chunks of a layer, in place: the same bits at an owner and at its keeper. The tied copy
/// is left alone: it follows its owner.
void apply_update(model::Engine& engine, const UpdateRule& rule, Step step, double gradient_norm,
                  const LayerTable& table, ChunkRange chunks, const UpdateArrays& arrays);

struct PieceName {
  std::uint32_t layer = 0;
  ElementRange elements;  ///< Of the layer.
  friend bool operator==(const PieceName&, const PieceName&) = default;
};

/// A piece in memory. The buffers may hold more than the piece; the numbers say where it begins.
struct HeldPiece {
  PieceName name;
  ChunkRange chunks;
  Buffer parameters;
  Buffer exp_avg;
  Buffer exp_avg_sq;
  BufferView gradient;  ///< Of the next update, reduced; empty when not here.
  std::size_t parameters_begin = 0;
  std::size_t moments_begin = 0;
  std::size_t gradient_begin = 0;
};

struct CommittedStep {
  Step step;
  double gradient_norm = 0;
  double loss = 0;
  bool stop = false;  ///< No step follows this one.
  friend bool operator==(const CommittedStep&, const CommittedStep&) = default;
};
/// Commits that a member remembers: the coordinator may not have heard of the last ones.
constexpr std::size_t kCommitsRemembered = 16;

/// What one member of a generation leaves behind.
struct MemberState {
  Step updates;          ///< That every piece has seen.
  bool reduced = false;  ///< The gradients of the next update are here too: it may be committed.
  std::vector<HeldPiece> pieces;
  std::vector<CommittedStep> commits;  ///< Last ones seen, ascending.
};
/// Applies the update whose gradients are here, and which is committed. No handle to the pieces'
/// memory is elsewhere.
void settle(model::Engine& engine, MemberState& state, const UpdateRule& rule, double gradient_norm,
            const std::vector<LayerTable>& table);

/// The same without the memory: what the coordinator is told.
struct HeldState {
  DeviceId device;
  Step updates;
  bool reduced = false;
  std::vector<PieceName> pieces;
  friend bool operator==(const HeldState&, const HeldState&) = default;
};

/// What a transferred run of elements becomes at its destination.
enum class StateUse : std::uint8_t {
  kShard,      ///< Parameters and moments of the own shard.
  kReplica,    ///< Parameters that another replica of the stage owns.
  kTiedCopy,   ///< The embedding's copy of the head's matrix: parameters.
  kKeptShard,  ///< Parameters and moments of a shard that is kept for its owner.
};
constexpr StateUse kStateUseLast = StateUse::kKeptShard;

struct StateTransfer {
  std::uint32_t number = 0;  ///< In its generation.
  StateUse use = StateUse::kShard;
  DeviceId source;
  DeviceId destination;  ///< May be on the same host.
  PieceName piece;       ///< As the source has it.
  DeviceId owner;        ///< kKeptShard: whose shard it is.
  friend bool operator==(const StateTransfer&, const StateTransfer&) = default;
};

/// Payloads of one transfer: parameters, and moments where the use needs them.
enum class StatePart : std::uint8_t { kParameters, kExpAvg, kExpAvgSq };
constexpr std::uint32_t kStateParts = 3;
constexpr std::uint32_t state_parts(StateUse use) {
  return use == StateUse::kShard || use == StateUse::kKeptShard ? kStateParts : 1;
}
/// `updates` and `generation`: of the state that goes, and that it goes for.
transport::BulkTag state_tag(const StateTransfer& transfer, StatePart part, Generation generation,
                             Step updates);

}  // namespace holmes::actors
