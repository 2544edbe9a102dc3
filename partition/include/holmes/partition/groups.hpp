#pragma once

// The published formulas for the ranks of parallel groups, where clusters are contiguous blocks of
// ranks: n devices, t tensor, p pipeline, d = n / (t p) data. Pure arithmetic: it knows no cluster
// and no NIC. t p must divide n.

#include <cstdint>
#include <vector>

namespace holmes::partition {

using RankGroups = std::vector<std::vector<std::uint32_t>>;

/// T_i = { i t .. (i + 1) t - 1 }.
RankGroups tensor_groups(std::uint32_t n, std::uint32_t t);

/// P_i = { i + k n/p : k = 0 .. p-1 }.
RankGroups pipeline_groups(std::uint32_t n, std::uint32_t p);

/// D_(i,j) = { i n/p + j + k t : k = 0 .. d-1 }, 0 <= i < p, 0 <= j < t, in order of (i, j).
RankGroups data_groups(std::uint32_t n, std::uint32_t t, std::uint32_t p);

}  // namespace holmes::partition
