// Committing and applying: the vote, the update of the own shard, and gathering the others'.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "replica.hpp"

namespace holmes::actors {

namespace {

using transport::BulkKind;

}  // namespace

// --- vote ---

/// Votes once every bucket is reduced. A checkpoint that is still being written holds the vote
/// back, since the commit allows its state to be overwritten.
void Replica::vote_when_reduced() {
  if (voted_ || saving_ || stopped_) return;
  for (const auto& bucket : buckets_)
    if (!bucket.done) return;
  if (!all_kept_reduced()) return;
  if (has_head() && losses_.size() != spec_.plan->micro_batches(spec_.stage, spec_.device).size())
    return;
  voted_ = true;
  reserve_updates();
  Vote vote = own_vote();
  on(vote);
}

Vote Replica::own_vote() {
  Vote vote;
  vote.generation = spec_.generation;
  vote.step = step_;
  vote.from = spec_.device;
  vote.losses = losses_;
  for (auto& bucket : buckets_) {
    if (bucket.squares.empty()) continue;
    const auto owned = bucket.table->owned_chunks(share_, replica_count());
    vote.squares.push_back({bucket.table->number, owned.begin, std::move(bucket.squares)});
    bucket.squares.clear();
  }
  return vote;
}

void Replica::on(Vote& vote) {
  if (vote.generation != spec_.generation || stopped_) return;
  const auto operation = "step " + std::to_string(step_.value());
  if (vote.step != step_)  // members below get their commits from here, so they are never ahead
    return fail(operation, Error(ErrorCode::kCorrupt,
                                 "a vote for step " + std::to_string(vote.step.value()) + " came"));
  auto added = votes_.add(std::move(vote));
  if (!added) return fail(operation, added.error());
  auto& complete = *added;
  if (!complete) return;
  const auto up = vote_parent(*spec_.plan, spec_.device);
  if (!up) return decide(*complete);
  complete->from = spec_.device;
  complete->to = *up;
  routes_->send(*complete);
}

/// The root of the vote tree: all shards are reduced, so the step is committed.
void Replica::decide(const Vote& complete) {
  Commit commit;
  commit.generation = spec_.generation;
  commit.step = complete.step;
  commit.gradient_norm = fold_norm(complete);
  commit.loss = fold_loss(complete);
  if (!std::isfinite(commit.gradient_norm) || !std::isfinite(commit.loss))
    return fail("step " + std::to_string(complete.step.value()),
                Error(ErrorCode::kInvalidArgument,
                      "the loss or the gradient norm is not a finite number; lower train.lr, "
                      "lengthen train.warmup_steps or set train.clip_norm"));
  const auto done = complete.step.value() + 1;
  commit.stop = stop_requested_ && done != spec_.span.steps;  // after the last the job ends anyway
  commit.save = commit.stop || done == spec_.span.steps ||
                (spec_.checkpoint_every != 0 && done % spec_.checkpoint_every == 0);
  caf::anon_send(resources_.agent, StepCommitted{spec_.generation, commit.step,
                                                 commit.gradient_norm, commit.loss, commit.stop});
  on(commit);
}

// --- apply ---

/// Room for the updated slices that the other owners will send after the commit.
void Replica::reserve_updates() {
  const auto reserve = [&](BulkKind kind, std::uint32_t layer, DeviceId source, std::size_t size) {
    if (size == 0 || routes_->is_local(source)) return;
    Buffer buffer = acquire(size * sizeof(float), "updated parameters");
    if (!buffer) return;
    routes_->reserve_tensor(tag(kind, step_, layer, source, spec_.device), flat_shape(size),
                            std::move(buffer), handle());
  };
  for (const auto& bucket : buckets_)
    for (std::size_t owner = 0; owner < shares().size(); ++owner)
      if (owner != share_)
        reserve(BulkKind::kParameters, bucket.table->number, shares()[owner].device,
                bucket.table->updated(owner, replica_count()).size());
  if (!has_embedding()) return;
  const auto& owners = shares(last_stage());
  for (std::size_t owner = 0; owner < owners.size(); ++owner)
    reserve(BulkKind::kTiedParameters, 0, owners[owner].device,
            tied_part(head_table(), owner, owners.size()).size());
}

void Replica::on(const Commit& commit) {
  if (commit.generation != spec_.generation || stopped_) return;
  if (commit.step != step_ || !voted_)  // it came from another host: not to be trusted
    return fail(
        "step " + std::to_string(step_.value()),
        Error(ErrorCode::kCorrupt, "a commit of step " + std::to_string(commit.step.value()) +
                                       " came, for which this member has not voted"));
  for (const DeviceId child : vote_children(*spec_.plan, spec_.device)) {
    Commit down = commit;
    down.to = child;
    routes_->send(down);
  }
  commit_ = commit;
  for (auto& bucket : buckets_) {
    HOLMES_ASSERT(bucket.missing == 0, "the step before has not been applied");
    bucket.applying = std::move(bucket.reduced);
    bucket.done = false;
  }
  voted_ = false;
  commits_.push_back({commit.step, commit.gradient_norm, commit.loss, commit.stop});
  if (commits_.size() > kCommitsRemembered) commits_.pop_front();
  for (std::uint32_t slot = 0; slot < buckets_.size(); ++slot) update(slot, commit);
  for (auto& kept : kept_) update_kept(kept, commit);
  step_ = Step(commit.step.value() + 1);
  if (step_.value() < spec_.span.steps && !commit.stop)
    begin_step();
  else
    replay_early();
}

/// AdamW on the own shard of one bucket, in place; the result is copied out for the others.
void Replica::update(std::uint32_t slot, const Commit& commit) {
  auto& bucket = buckets_[slot];
  bucket.missing = 1;
  for (std::size_t owner = 0; owner < shares().size(); ++owner)
    if (owner != share_ && !bucket.table->updated(owner, replica_count()).empty()) ++bucket.missing;
  if (has_embedding() && slot == 0)
    for (std::size_t owner = 0; owner < shares(last_stage()).size(); ++owner)
      if (!tied_part(head_table(), owner, shares(last_stage()).size()).empty()) ++bucket.missing;

  const auto range = bucket.table->updated(share_, replica_count());
  const bool is_tied_head =
      has_head() && slot + 1 == buckets_.size() && !bucket.table->tied.empty();
  const bool others = replica_count() > 1 || is_tied_head;
  auto copy = std::make_shared<Buffer>();
  if (others && !range.empty()) *copy = acquire(range.size() * sizeof(float), "updated parameters");
  if (stopped_) return;
  const auto owned = bucket.table->owned_chunks(share_, replica_count());
  UpdateArrays arrays;
  arrays.parameters = bucket.parameters.mutable_as<float>();
  arrays.gradient = bucket.applying.as<float>();
  arrays.gradient_begin = arrays.moments_begin = bucket.shard.begin;
  arrays.exp_avg = bucket.exp_avg.mutable_as<float>();
  arrays.exp_avg_sq = bucket.exp_avg_sq.mutable_as<float>();
  run(
      resources_.compute, ComputePriority::kUpdate, 7 * bucket.applying.size(),
      [this, &bucket, owned, arrays, range, copy, step = commit.step, norm = commit.gradient_norm] {
        apply_update(resources_.engine, spec_.rule, step, norm, *bucket.table, owned, arrays);
        if (*copy)
          std::memcpy(copy->mutable_bytes().data(), arrays.parameters.data() + range.begin,
                      copy->size());
      },
      [this, slot, copy, step = commit.step] {
        buckets_[slot].applying = {};
        publish(slot, step, std::move(*copy));
        slice_done(slot);
      });
}

/// Sends the updated slice to the replicas of the stage, and the tied matrix to the first stage.
void Replica::publish(std::uint32_t slot, Step step, Buffer updated) {
  if (!updated) return;
  auto& bucket = buckets_[slot];
  const auto range = bucket.table->updated(share_, replica_count());
  for (std::size_t other = 0; other < shares().size(); ++other)
    if (other != share_)
      routes_->send_tensor(tag(BulkKind::kParameters, step, bucket.table->number, spec_.device,
                               shares()[other].device),
                           flat_shape(range.size()), BufferView(updated));
  if (!has_head() || slot + 1 != buckets_.size()) return;
  const auto part = tied_part(*bucket.table, share_, replica_count());
  if (part.empty()) return;
  const auto begin = bucket.table->tied.begin + part.begin - range.begin;
  for (const auto& share : shares(StageIndex(0)))
    routes_->send_tensor(tag(BulkKind::kTiedParameters, step, 0, spec_.device, share.device),
                         flat_shape(part.size()),
                         BufferView(updated, begin * sizeof(float), part.size() * sizeof(float)));
}

/// Puts a slice that another owner has updated where it belongs.
void Replica::take_slice(std::uint32_t slot, const transport::BulkTag& tag, BufferView payload) {
  auto& bucket = buckets_[slot];
  ElementRange range;
  if (tag.kind == BulkKind::kTiedParameters) {
    const auto& owners = shares(last_stage());
    const auto owner = std::find_if(owners.begin(), owners.end(),
                                    [&](const auto& share) { return share.device == tag.source; });
    const auto part =
        tied_part(head_table(), static_cast<std::size_t>(owner - owners.begin()), owners.size());
    range = {bucket.table->tied.begin + part.begin, bucket.table->tied.begin + part.end};
  } else {
    const auto owner = std::find_if(shares().begin(), shares().end(),
                                    [&](const auto& share) { return share.device == tag.source; });
    range =
        bucket.table->updated(static_cast<std::size_t>(owner - shares().begin()), replica_count());
  }
  HOLMES_ASSERT(payload.size() == range.size() * sizeof(float), "a slice of another size");
  const auto into = bucket.parameters.mutable_as<float>().subspan(range.begin, range.size());
  run(
      resources_.compute, ComputePriority::kUpdate, 2 * payload.size(),
      [into, payload] { std::memcpy(into.data(), payload.bytes().data(), payload.size()); },
      [this, slot] { slice_done(slot); });
}

/// A bucket that is whole again goes to the Stage; when all are, the step is applied.
void Replica::slice_done(std::uint32_t slot) {
  auto& bucket = buckets_[slot];
  HOLMES_ASSERT(bucket.missing > 0, "more slices than owners");
  if (--bucket.missing != 0) return;
  if (!commit_->stop)
    caf::anon_send(stage_, ParametersReady{spec_.generation, Step(commit_->step.value() + 1), slot,
                                           bucket.parameters});
  const bool applied =
      std::all_of(buckets_.begin(), buckets_.end(), [](const auto& b) { return b.missing == 0; });
  if (applied && commit_->save) save();
}

/// Writes this member's part of a checkpoint straight from the live state, beside the next step.
void Replica::save() {
  saving_ = true;
  auto request = std::make_shared<SaveRequest>();
  request->step = commit_ ? Step(commit_->step.value() + 1) : spec_.first_step;
  request->stage = spec_.stage.index();
  request->stage_count = spec_.plan->stages.size();
  const auto members = spec_.plan->members();
  request->member = static_cast<std::size_t>(
      std::find(members.begin(), members.end(), spec_.device) - members.begin());
  request->member_count = members.size();
  request->writes_parameters = share_ == 0;
  for (auto& bucket : buckets_) {
    request->layers.push_back({bucket.table, bucket.parameters.as<float>(), bucket.shard,
                               bucket.exp_avg.as<float>(), bucket.exp_avg_sq.as<float>()});
  }
  auto files = std::make_shared<Result<std::vector<SavedFile>>>(std::vector<SavedFile>());
  run(
      resources_.disk, ComputePriority::kPass, 0,
      [request, files, &store = resources_.store] { *files = store.save(*request); },
      [this, request, files] {
        saving_ = false;
        if (!*files)
          return fail("saving the checkpoint of step " + std::to_string(request->step.value()),
                      files->error());
        caf::anon_send(resources_.agent, ShardSaved{spec_.generation, request->step, spec_.device,
                                                    std::move(**files)});
        vote_when_reduced();
      });
}

}  // namespace holmes::actors
