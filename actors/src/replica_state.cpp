// Copies that a Replica keeps of other members' shards, and state that changes hands between two
// generations.

#include <algorithm>
#include <cstring>

#include "replica.hpp"

namespace holmes::actors {

namespace {

using transport::BulkKind;

std::span<float> part_of(Buffer& buffer, std::size_t begin, const ElementRange& elements) {
  return buffer.mutable_as<float>().subspan(elements.begin - begin, elements.size());
}

}  // namespace

// --- copies for others ---

/// The keeper gets the reduced gradients before this member's vote can count: it votes itself only
/// when it has them.
void Replica::send_to_keeper(const Bucket& bucket) {
  const auto range = bucket.table->updated(share_, replica_count());
  if (!spec_.keeper || range.empty()) return;
  routes_->send_tensor(
      tag(BulkKind::kReducedGradient, step_, bucket.table->number, spec_.device, *spec_.keeper),
      flat_shape(range.size()),
      BufferView(bucket.reduced, (range.begin - bucket.shard.begin) * sizeof(float),
                 range.size() * sizeof(float)));
}

/// Room for the gradients of the running step.
void Replica::reserve_kept(Kept& kept) {
  Buffer buffer = acquire(kept.range.size() * sizeof(float), "gradients of a copy");
  if (!buffer) return;
  routes_->reserve_tensor(
      tag(BulkKind::kReducedGradient, step_, kept.table->number, kept.owner, spec_.device),
      flat_shape(kept.range.size()), std::move(buffer), handle());
}

void Replica::take_kept(const transport::BulkTag& tag, BufferView payload) {
  const auto kept = std::find_if(kept_.begin(), kept_.end(), [&tag](const Kept& one) {
    return one.owner == tag.source && one.table->number == tag.layer.value();
  });
  HOLMES_ASSERT(kept != kept_.end() && tag.step == step_ && !kept->reduced,
                "gradients come only where and when there is room for them");
  kept->gradient = std::move(payload);
  kept->reduced = true;
  vote_when_reduced();
}

bool Replica::all_kept_reduced() const {
  return std::all_of(kept_.begin(), kept_.end(), [](const Kept& kept) { return kept.reduced; });
}

void Replica::update_kept(Kept& kept, const Commit& commit) {
  kept.reduced = false;
  const auto gradient = kept.gradient.bytes();
  UpdateArrays arrays;
  arrays.parameters = kept.parameters.mutable_as<float>();
  arrays.gradient = {reinterpret_cast<const float*>(gradient.data()),
                     gradient.size() / sizeof(float)};
  arrays.exp_avg = kept.exp_avg.mutable_as<float>();
  arrays.exp_avg_sq = kept.exp_avg_sq.mutable_as<float>();
  arrays.parameters_begin = arrays.gradient_begin = arrays.moments_begin = kept.range.begin;
  run(
      resources_.compute, ComputePriority::kUpdate, 7 * gradient.size(),
      [this, &kept, arrays, step = commit.step, norm = commit.gradient_norm] {
        apply_update(resources_.engine, spec_.rule, step, norm, *kept.table, kept.chunks, arrays);
      },
      [this, &kept, last = commit.stop] {
        kept.gradient = {};
        if (step_.value() < spec_.span.steps && !last) reserve_kept(kept);
      });
}

/// From initial values or a checkpoint, layer by layer.
Status Replica::load_kept() {
  for (auto& kept : kept_) {
    HOLMES_TRY_ASSIGN(Buffer layer, resources_.pool.acquire(kept.table->elements * sizeof(float)));
    const LayerState state{kept.table, layer.mutable_as<float>(), kept.range,
                           kept.exp_avg.mutable_as<float>(), kept.exp_avg_sq.mutable_as<float>()};
    HOLMES_TRY(load_layers({&state, 1}));
    const auto values = state.parameters.subspan(kept.range.begin, kept.range.size());
    std::copy(values.begin(), values.end(), kept.parameters.mutable_as<float>().begin());
  }
  return {};
}

// --- state that changes hands ---

void Replica::receive_state(std::shared_ptr<const Routes> routes) {
  acquire_state();
  if (stopped_) return;
  routes_ = std::move(routes);
  if (has_embedding()) {  // nobody holds moments of a tied copy: it has none
    std::memset(buckets_[0].exp_avg.mutable_bytes().data(), 0, buckets_[0].exp_avg.size());
    std::memset(buckets_[0].exp_avg_sq.mutable_bytes().data(), 0, buckets_[0].exp_avg_sq.size());
  }
  for (const auto& transfer : spec_.transfers) {
    for (std::uint32_t part = 0; part < state_parts(transfer.use); ++part) {
      ++state_missing_;
      if (routes_->is_here(transfer.source)) continue;
      Buffer buffer = acquire(transfer.piece.elements.size() * sizeof(float), "state");
      if (!buffer) return;
      routes_->reserve_tensor(state_tag(transfer, StatePart(part), spec_.generation, step_),
                              flat_shape(transfer.piece.elements.size()), std::move(buffer),
                              handle());
    }
  }
}

void Replica::take_state(const transport::BulkTag& tag, BufferView payload) {
  const auto transfer = std::find_if(
      spec_.transfers.begin(), spec_.transfers.end(),
      [&tag](const StateTransfer& one) { return one.number == tag.node / kStateParts; });
  HOLMES_ASSERT(transfer != spec_.transfers.end() && state_missing_ > 0, "state nobody asked for");
  const auto into = state_target(*transfer, StatePart(tag.node % kStateParts));
  HOLMES_ASSERT(into.size_bytes() == payload.size(), "a piece of state of another size");
  run(
      resources_.compute, ComputePriority::kUpdate, 2 * payload.size(),
      [into, payload] { std::memcpy(into.data(), payload.bytes().data(), payload.size()); },
      [this] {
        if (--state_missing_ == 0) state_is_whole();
      });
}

std::span<float> Replica::state_target(const StateTransfer& transfer, StatePart part) {
  auto elements = transfer.piece.elements;
  if (transfer.use == StateUse::kKeptShard) {
    const auto kept = std::find_if(kept_.begin(), kept_.end(), [&transfer](const Kept& one) {
      return one.owner == transfer.owner && one.table->number == transfer.piece.layer;
    });
    HOLMES_ASSERT(kept != kept_.end(), "a copy that this member does not keep");
    auto& buffer = part == StatePart::kParameters ? kept->parameters
                   : part == StatePart::kExpAvg   ? kept->exp_avg
                                                  : kept->exp_avg_sq;
    return part_of(buffer, kept->range.begin, elements);
  }
  if (transfer.use == StateUse::kTiedCopy) {
    auto& embedding = buckets_.front();
    const auto shift = [&](std::size_t at) {
      return at - head_table().tied.begin + embedding.table->tied.begin;
    };
    return part_of(embedding.parameters, 0, {shift(elements.begin), shift(elements.end)});
  }
  auto& bucket = buckets_.at(slot_of(LayerIndex(transfer.piece.layer)));
  if (part == StatePart::kParameters) return part_of(bucket.parameters, 0, elements);
  return part_of(part == StatePart::kExpAvg ? bucket.exp_avg : bucket.exp_avg_sq,
                 bucket.shard.begin, elements);
}

void Replica::state_is_whole() {
  whole_ = true;
  caf::anon_send(resources_.agent, MemberReady{spec_.generation, spec_.device});
}

/// Everything that this member holds twice with somebody else: its shards and its copies. All of it
/// has seen the same updates, since updates run to their end once a commit is here.
std::shared_ptr<MemberState> Replica::leave_state() {
  auto state = std::make_shared<MemberState>();
  state->updates = step_;
  state->reduced = voted_;
  state->commits.assign(commits_.begin(), commits_.end());
  for (auto& bucket : buckets_) {
    const auto range = bucket.table->updated(share_, replica_count());
    if (range.empty()) continue;
    state->pieces.push_back({{bucket.table->number, range},
                             bucket.table->owned_chunks(share_, replica_count()),
                             std::move(bucket.parameters),
                             std::move(bucket.exp_avg),
                             std::move(bucket.exp_avg_sq),
                             voted_ ? BufferView(std::move(bucket.reduced)) : BufferView(),
                             0,
                             bucket.shard.begin,
                             bucket.shard.begin});
  }
  for (auto& kept : kept_)
    state->pieces.push_back({{kept.table->number, kept.range},
                             kept.chunks,
                             std::move(kept.parameters),
                             std::move(kept.exp_avg),
                             std::move(kept.exp_avg_sq),
                             voted_ ? std::move(kept.gradient) : BufferView(),
                             kept.range.begin,
                             kept.range.begin,
                             kept.range.begin});
  return state;
}

}  // namespace holmes::actors
