#pragma once

// Memory of the devices of one stage: what the stage has in common is found once.

#include <map>
#include <span>
#include <vector>

#include "holmes/partition/cost.hpp"

namespace holmes::partition {

/// Bytes of activations as they are kept: ModelCost counts elements of 4 bytes.
double kept_bytes(std::uint64_t bytes, const CostOptions& options);

class StageMemory {
 public:
  /// `hosts`: of each device, by rank; empty: all replicas are on hosts of their own. The others
  /// must outlive it.
  StageMemory(const Plan& plan, const ModelCost& model, StageIndex stage,
              const CostOptions& options, std::span<const HostId> hosts);

  MemoryUse of(const Share& share) const;
  /// With so many micro-batches in flight, and whatever the stage before sends ahead.
  MemoryUse of(const Share& share, double in_flight) const;
  /// Of one share's shard at its keeper: parameters, moments and gradients.
  double copy_bytes() const;
  /// Of gradients on their way from a share to its keeper.
  double sent_copy_bytes() const;
  double layer_bytes() const;
  /// Shares with the same key need the same.
  std::vector<std::uint32_t> key(const Share& share) const;

 private:
  /// As systems that add gradients in place in half precision and exchange them by rings.
  MemoryUse published(double in_flight) const;
  /// What this project's training reserves (actors' Stage::demand and Replica::demand), rounding of
  /// buffers apart.
  MemoryUse reserved(const Share& share, double in_flight, double arrivals) const;
  double activation_count(double in_flight, double arrivals) const;
  MemoryUse with_constants(MemoryUse use) const;
  double micro_batches(const Share& share) const;
  double exchange_bytes(const Share& share) const;
  double in_flight(const Share& share) const;
  double stash() const;
  /// Elements that each share updates.
  double updated() const;
  std::uint32_t subtrees(const Share& share) const;
  /// Shares of this stage, or of the first or last, that are not on the host of `share`.
  double remote_shares(const Share& share, std::size_t stage) const;

  const Plan& plan_;
  const ModelCost& model_;
  const StageIndex stage_;
  const CostOptions& options_;
  const std::span<const HostId> hosts_;
  bool embedding_ = false;
  bool head_ = false;
  double parameters_ = 0;
  double replicas_ = 1;
  double subtrees_ = 0;  ///< Of all shares.
  std::map<HostId, double> subtrees_on_;
  double fold_buffers_ = 1;
  double upstream_ = 0;  ///< Micro-batches in flight at the stage before, all its shares.
};

}  // namespace holmes::partition
