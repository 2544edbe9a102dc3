#include "state.hpp"

#include "holmes/base/assert.hpp"

namespace holmes::actors {

void apply_update(model::Engine& engine, const UpdateRule& rule, Step step, double gradient_norm,
                  const LayerTable& table, ChunkRange chunks, const UpdateArrays& arrays) {
  const float rate = model::learning_rate(rule.learning_rate, step.value());
  const float scale = model::clip_factor(gradient_norm, rule.clip_norm);
  for (auto c = chunks.begin; c < chunks.end;) {
    // As many as make one run of one kind: a GPU would rather begin few updates than many.
    const auto& first = table.chunks[c];
    std::size_t count = 0;
    for (; c < chunks.end; ++c) {
      const auto& chunk = table.chunks[c];
      if (chunk.offset != first.offset + count || chunk.decay != first.decay ||
          chunk.tied_copy != first.tied_copy)
        break;
      count += chunk.count;
    }
    if (first.tied_copy) continue;
    const auto part = [&](auto values, std::size_t begin) {
      return values.subspan(first.offset - begin, count);
    };
    engine.adamw(
        rule.optimizer, {step.value(), rate, scale, first.decay},
        {part(arrays.parameters, arrays.parameters_begin),
         part(arrays.gradient, arrays.gradient_begin), part(arrays.exp_avg, arrays.moments_begin),
         part(arrays.exp_avg_sq, arrays.moments_begin)});
  }
}

void settle(model::Engine& engine, MemberState& state, const UpdateRule& rule, double gradient_norm,
            const std::vector<LayerTable>& table) {
  HOLMES_ASSERT(state.reduced, "an update without its gradients");
  for (auto& piece : state.pieces) {
    const auto gradient = piece.gradient.bytes();
    UpdateArrays arrays;
    arrays.parameters = piece.parameters.mutable_as<float>();
    arrays.parameters_begin = piece.parameters_begin;
    arrays.gradient = {reinterpret_cast<const float*>(gradient.data()),
                       gradient.size() / sizeof(float)};
    arrays.gradient_begin = piece.gradient_begin;
    arrays.exp_avg = piece.exp_avg.mutable_as<float>();
    arrays.exp_avg_sq = piece.exp_avg_sq.mutable_as<float>();
    arrays.moments_begin = piece.moments_begin;
    apply_update(engine, rule, state.updates, gradient_norm, table.at(piece.name.layer),
                 piece.chunks, arrays);
    piece.gradient = {};
  }
  state.updates = Step(state.updates.value() + 1);
  state.reduced = false;
}

transport::BulkTag state_tag(const StateTransfer& transfer, StatePart part, Generation generation,
                             Step updates) {
  transport::BulkTag tag;
  tag.generation = generation;
  tag.step = updates;
  tag.kind = transport::BulkKind::kState;
  tag.layer = LayerIndex(transfer.piece.layer);
  tag.node = transfer.number * kStateParts + static_cast<std::uint32_t>(part);
  tag.source = transfer.source;
  tag.destination = transfer.destination;
  return tag;
}

}  // namespace holmes::actors
