// Reducing: gradients of leaves become the sum of the whole step at the owner of each shard.

#include <algorithm>
#include <cstring>

#include "holmes/partition/reduction_tree.hpp"
#include "replica.hpp"

namespace holmes::actors {

namespace {

using partition::TreeNode;

/// Adds partial sums in tree order. `partials` holds nodes whose leaves together are all leaves.
class TreeFold {
 public:
  TreeFold(const std::map<TreeNode, BufferView>& partials, BufferPool& pool, model::Engine& engine)
      : partials_(partials), pool_(pool), engine_(engine) {}

  Result<Buffer> sum(TreeNode node) {
    if (const auto at = partials_.find(node); at != partials_.end()) return copy(at->second);
    HOLMES_TRY_ASSIGN(Buffer left, sum(2 * node));
    const auto right = partials_.find(2 * node + 1);
    if (right != partials_.end()) {
      add(left, right->second);
    } else {
      HOLMES_TRY_ASSIGN(Buffer computed, sum(2 * node + 1));
      add(left, BufferView(std::move(computed)));
    }
    return left;
  }

 private:
  Result<Buffer> copy(const BufferView& view) {
    HOLMES_TRY_ASSIGN(Buffer buffer, pool_.acquire(view.size()));
    std::memcpy(buffer.mutable_bytes().data(), view.bytes().data(), view.size());
    return buffer;
  }
  void add(Buffer& to, const BufferView& from) {
    const auto bytes = from.bytes();
    engine_.add(to.mutable_as<float>(),
                {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)});
  }

  const std::map<TreeNode, BufferView>& partials_;
  BufferPool& pool_;
  model::Engine& engine_;
};

BufferView elements(const Buffer& buffer, const ElementRange& range) {
  return BufferView(buffer, range.begin * sizeof(float), range.size() * sizeof(float));
}

}  // namespace

void Replica::on(GradientReady& ready) {
  if (ready.generation != spec_.generation || stopped_) return;
  HOLMES_ASSERT(ready.step == step_, "gradients of a step that is not being reduced");
  --buckets_[ready.slot].leaves_lent;
  insert_node(ready.slot, partition::leaf_node(spec_.plan->job.reduction_leaves, ready.leaf),
              std::move(ready.gradients));
  lend(ready.slot);
}

/// Adds siblings as soon as both are here, until the node is one that this replica sends on.
void Replica::insert_node(std::uint32_t slot, TreeNode node, Buffer sum) {
  if (std::find(subtrees_.begin(), subtrees_.end(), node) != subtrees_.end())
    return distribute(slot, node, std::move(sum));
  auto& nodes = buckets_[slot].nodes;
  const auto other = nodes.find(partition::sibling(node));
  if (other == nodes.end()) {
    nodes[node] = std::move(sum);
    return;
  }
  auto left = std::make_shared<Buffer>(std::move(sum));
  auto right = std::make_shared<Buffer>(std::move(other->second));
  nodes.erase(other);
  if (!partition::is_left(node)) std::swap(left, right);
  const auto into = left->mutable_as<float>();
  const auto from = right->as<float>();
  run(
      resources_.compute, ComputePriority::kSum, 3 * left->size(),
      [into, from, &engine = resources_.engine] { engine.add(into, from); },
      [this, slot, node, left, right] {
        *right = {};
        --buckets_[slot].gradients_held;
        insert_node(slot, partition::parent(node), std::move(*left));
        lend(slot);
      });
}

/// Sends each owner its shard of a finished subtree.
void Replica::distribute(std::uint32_t slot, TreeNode node, Buffer sum) {
  auto& bucket = buckets_[slot];
  --bucket.gradients_held;
  for (std::size_t owner = 0; owner < shares().size(); ++owner) {
    const auto range = bucket.table->shard(owner, replica_count());
    if (range.empty()) continue;
    if (owner == share_) {
      bucket.partials[node] = elements(sum, range);
      continue;
    }
    routes_->send_tensor(tag(transport::BulkKind::kGradientPartial, step_, bucket.table->number,
                             spec_.device, shares()[owner].device, node),
                         flat_shape(range.size()), elements(sum, range));
  }
  sum = {};
  fold_when_complete(slot);
}

void Replica::on(TensorArrived& arrived) {
  if (arrived.tag.generation != spec_.generation || stopped_) return;
  const auto& tag = arrived.tag;
  using transport::BulkKind;
  if (tag.kind == BulkKind::kParameters || tag.kind == BulkKind::kTiedParameters) {
    if (!commit_ || commit_->step != tag.step) return early_.push_back(std::move(arrived));
    return take_slice(slot_of(tag.layer), tag, std::move(arrived.payload));
  }
  if (tag.kind == BulkKind::kState) return take_state(tag, std::move(arrived.payload));
  if (tag.kind == BulkKind::kReducedGradient) return take_kept(tag, std::move(arrived.payload));
  if (!stage_ || tag.step != step_) return early_.push_back(std::move(arrived));
  if (tag.kind == BulkKind::kTiedGradient) {
    const auto slot = static_cast<std::uint32_t>(buckets_.size() - 1);
    buckets_[slot].tied[tag.source] = std::move(arrived.payload);
    return finish_when_complete(slot);
  }
  HOLMES_ASSERT(tag.kind == BulkKind::kGradientPartial, "a payload that a replica never gets");
  const auto slot = slot_of(tag.layer);
  buckets_[slot].partials[tag.node] = std::move(arrived.payload);
  fold_when_complete(slot);
}

/// All replicas' partial sums of this shard are here: adds them in tree order.
void Replica::fold_when_complete(std::uint32_t slot) {
  auto& bucket = buckets_[slot];
  if (bucket.folded) return;
  if (bucket.shard.empty()) {  // nothing of this layer is this member's
    bucket.folded = true;
    return finish_when_complete(slot);
  }
  if (bucket.partials.size() != node_count_) return;
  bucket.folded = true;
  auto partials = std::make_shared<std::map<TreeNode, BufferView>>(std::move(bucket.partials));
  bucket.partials.clear();
  if (node_count_ == 1) {  // the only replica: the tree's root is the sum already
    Buffer whole = partials->begin()->second.buffer();
    partials->clear();
    return folded(slot, std::move(whole));
  }
  auto sum = std::make_shared<Result<Buffer>>(Buffer());
  run(
      resources_.compute, ComputePriority::kSum,
      2 * node_count_ * bucket.shard.size() * sizeof(float),
      [partials, sum, &pool = resources_.pool, &engine = resources_.engine] {
        *sum = TreeFold(*partials, pool, engine).sum(1);
        partials->clear();
      },
      [this, slot, sum] {
        if (!*sum) return fail("summing gradients", sum->error());
        folded(slot, std::move(**sum));
      });
}

void Replica::folded(std::uint32_t slot, Buffer reduced) {
  auto& bucket = buckets_[slot];
  bucket.reduced = std::move(reduced);
  if (has_embedding() && slot == 0) send_tied_gradients(bucket);
  finish_when_complete(slot);
}

/// The embedding's gradient of the tied matrix goes to the owners of the matrix.
void Replica::send_tied_gradients(Bucket& bucket) {
  for (const auto& slice : tied_slices_) {
    if (slice.copy_owner != share_) continue;
    const DeviceId owner = shares(last_stage())[slice.head_owner].device;
    const auto begin = bucket.table->tied.begin + slice.elements.begin - bucket.shard.begin;
    routes_->send_tensor(tag(transport::BulkKind::kTiedGradient, step_, 0, spec_.device, owner),
                         flat_shape(slice.elements.size()),
                         elements(bucket.reduced, {begin, begin + slice.elements.size()}));
  }
}

/// Adds the tied gradient where it belongs, then takes the squares: the shard is reduced.
void Replica::finish_when_complete(std::uint32_t slot) {
  auto& bucket = buckets_[slot];
  if (!bucket.folded || bucket.finishing) return;
  if (!bucket.shard.empty() && !bucket.reduced) return;  // the fold is still running
  const bool takes_tied = has_head() && slot + 1 == buckets_.size();
  std::vector<std::pair<ElementRange, BufferView>> additions;
  for (const auto& slice : tied_slices_) {
    if (!takes_tied || slice.head_owner != share_) continue;
    const auto arrived = bucket.tied.find(shares(StageIndex(0))[slice.copy_owner].device);
    if (arrived == bucket.tied.end()) return;
    const auto begin = bucket.table->tied.begin + slice.elements.begin - bucket.shard.begin;
    additions.push_back({{begin, begin + slice.elements.size()}, arrived->second});
  }
  bucket.finishing = true;
  bucket.tied.clear();
  const auto owned = bucket.table->owned_chunks(share_, replica_count());
  auto squares = std::make_shared<std::vector<double>>();
  const auto gradients =
      additions.empty() ? std::span<float>{} : bucket.reduced.mutable_as<float>();
  const auto values = bucket.reduced.as<float>();
  run(
      resources_.compute, ComputePriority::kSum, bucket.reduced.size(),
      [&bucket, &engine = resources_.engine, additions = std::move(additions), owned, squares,
       gradients, values] {
        for (const auto& [range, view] : additions)
          engine.add(gradients.subspan(range.begin, range.size()),
                     {reinterpret_cast<const float*>(view.bytes().data()), range.size()});
        std::vector<model::Chunk> chunks;
        for (auto c = owned.begin; c < owned.end; ++c) {
          chunks.push_back(bucket.table->chunks[c]);
          chunks.back().offset -= bucket.shard.begin;
          if (chunks.back().tied_copy) chunks.pop_back();
        }
        squares->resize(chunks.size());
        engine.sums_of_squares(values, chunks, *squares);
      },
      [this, slot, squares] {
        buckets_[slot].squares = std::move(*squares);
        buckets_[slot].done = true;
        send_to_keeper(buckets_[slot]);
        vote_when_reduced();
      });
}

void Replica::on(const LossReady& ready) {
  if (ready.generation != spec_.generation || stopped_) return;
  HOLMES_ASSERT(ready.step == step_, "the loss of a step that is not being reduced");
  losses_.push_back({ready.micro_batch, ready.loss});
  vote_when_reduced();
}

}  // namespace holmes::actors
