#pragma once

// What the search looks at: which units make up each stage, how their leaves are dealt, and how
// blocks are split over the stages.

#include <vector>

#include "holmes/partition/search.hpp"
#include "layout.hpp"

namespace holmes::partition {

/// Units of the whole cluster up to which every placement is tried.
constexpr std::size_t kExhaustiveUnitsMax = 6;
/// Blocks up to which every contiguous split is.
constexpr std::uint32_t kExhaustiveBlocksMax = 8;

/// Distinct layouts, those of the strategies among them. Few units: every ordered partition of
/// every subset of the units, where units that are alike are not told apart.
std::vector<Layout> layouts(const Cluster& cluster, const ModelCost& model, const JobShape& job,
                            const PlanOptions& options);

/// Stages with devices and leaves (by speed), without blocks.
std::vector<StagePlan> deal_shares(const Layout& layout, const std::vector<const Device*>& devices,
                                   std::uint32_t leaves);

/// Blocks of each stage: every split of few blocks over a small cluster, else the optimal one for
/// the stages' times, the paper's formula and the equal one.
std::vector<std::vector<std::uint32_t>> splits(const Plan& shares, const ModelCost& model,
                                               const std::vector<const Device*>& devices,
                                               const CostOptions& cost, bool every);

void put_blocks(const std::vector<std::uint32_t>& counts, Plan& plan);

/// No step of the plan is shorter: the work of each replica, and what must come before and after it
/// at other stages. `plan` has its blocks.
double lower_bound_s(const Plan& plan, const ModelCost& model,
                     const std::vector<const Device*>& devices, const CostOptions& cost);

}  // namespace holmes::partition
