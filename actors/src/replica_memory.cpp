// How much memory a Replica can come to hold: what its HostAgent reserves before the first step.

#include <algorithm>

#include "replica.hpp"

namespace holmes::actors {

namespace {

using partition::TreeNode;

/// Buffers of a shard that adding `partials` in tree order takes at once, the sum at `node`
/// included (TreeFold in replica_reduce.cpp).
std::size_t fold_buffers(const std::vector<TreeNode>& partials, TreeNode node) {
  const auto is_partial = [&](TreeNode at) {
    return std::find(partials.begin(), partials.end(), at) != partials.end();
  };
  if (is_partial(node)) return 1;
  const TreeNode right = 2 * node + 1;
  const auto with_right = is_partial(right) ? 1 : 1 + fold_buffers(partials, right);
  return std::max(fold_buffers(partials, 2 * node), with_right);
}

}  // namespace

/// "And one" is a payload that has arrived while its sender still holds it.
BufferDemand Replica::demand(const Routes& routes) const {
  BufferDemand demand;
  const bool alone = replica_count() == 1;
  std::size_t remote_partials = 0;
  std::vector<TreeNode> partials;
  for (std::size_t other = 0; other < shares().size(); ++other) {
    const auto& nodes = all_subtrees_[other];
    partials.insert(partials.end(), nodes.begin(), nodes.end());
    if (!routes.is_local(shares()[other].device)) remote_partials += nodes.size();
  }
  const std::size_t fold_buffers_max = alone ? 0 : fold_buffers(partials, 1);
  for (const auto& bucket : buckets_) {
    const auto& table = *bucket.table;
    const auto whole = table.elements * sizeof(float);
    const auto shard = bucket.shard.size() * sizeof(float);
    demand.add(whole);     // parameters
    demand.add(shard, 2);  // moments
    // Sums of own subtrees wait for those of others, or lie being sent; a lone replica's only one
    // is applied while the next step begins.
    demand.add(whole, gradients_max_ + subtrees_.size());
    if (!alone) demand.add(whole, subtrees_.size() - 1);
    if (!bucket.shard.empty()) demand.add(shard, remote_partials);
    if (!alone) demand.add(shard, 1);  // the reduced gradients
    const auto updated = table.updated(share_, replica_count()).size();
    if (updated != 0) demand.add(updated * sizeof(float), 2);  // sent, and one
    for (std::size_t owner = 0; owner < shares().size(); ++owner)
      if (owner != share_ && !routes.is_local(shares()[owner].device))
        if (const auto slice = table.updated(owner, replica_count()).size(); slice != 0)
          demand.add(slice * sizeof(float));
  }
  // One fold runs at a time; which bucket's it is makes the size.
  for (const auto& bucket : buckets_)
    if (fold_buffers_max > 1) demand.add(bucket.shard.size() * sizeof(float), fold_buffers_max - 1);
  add_tied_demand(routes, demand);
  add_kept_demand(demand);
  for (const auto& transfer : spec_.transfers)
    if (!routes.is_here(transfer.source))
      demand.add(transfer.piece.elements.size() * sizeof(float), state_parts(transfer.use));
  return demand;
}

/// Copies for others, and own reduced gradients on their way to the keeper.
void Replica::add_kept_demand(BufferDemand& demand) const {
  std::size_t largest = 0;
  for (const auto& kept : kept_) {
    demand.add(kept.range.size() * sizeof(float), 4);  // parameters, moments, gradients
    largest = std::max(largest, kept.table->elements);
  }
  if (largest != 0) demand.add(largest * sizeof(float));  // a layer, to load from
  if (!spec_.keeper) return;
  for (const auto& bucket : buckets_)
    demand.add((replica_count() == 1 ? bucket.table->elements : bucket.shard.size()) *
               sizeof(float));
}

void Replica::add_tied_demand(const Routes& routes, BufferDemand& demand) const {
  if (has_head())
    for (const auto& slice : tied_slices_)
      if (slice.head_owner == share_ &&
          !routes.is_local(shares(StageIndex(0))[slice.copy_owner].device))
        demand.add(slice.elements.size() * sizeof(float));
  if (!has_embedding() || tied_slices_.empty()) return;
  demand.add(buckets_.front().shard.size() * sizeof(float));  // reduced, being sent, and one
  const auto& owners = shares(last_stage());
  for (std::size_t owner = 0; owner < owners.size(); ++owner)
    if (const auto part = tied_part(head_table(), owner, owners.size()).size();
        part != 0 && !routes.is_local(owners[owner].device))
      demand.add(part * sizeof(float));
}

}  // namespace holmes::actors
