#include "holmes/partition/groups.hpp"

#include "holmes/base/assert.hpp"

namespace holmes::partition {

RankGroups tensor_groups(std::uint32_t n, std::uint32_t t) {
  HOLMES_ASSERT(t > 0 && n % t == 0, "the tensor degree must divide the devices");
  RankGroups groups(n / t);
  for (std::uint32_t rank = 0; rank < n; ++rank) groups[rank / t].push_back(rank);
  return groups;
}

RankGroups pipeline_groups(std::uint32_t n, std::uint32_t p) {
  HOLMES_ASSERT(p > 0 && n % p == 0, "the pipeline degree must divide the devices");
  RankGroups groups(n / p);
  for (std::uint32_t i = 0; i < n / p; ++i) {
    for (std::uint32_t k = 0; k < p; ++k) groups[i].push_back(i + k * (n / p));
  }
  return groups;
}

RankGroups data_groups(std::uint32_t n, std::uint32_t t, std::uint32_t p) {
  HOLMES_ASSERT(t > 0 && p > 0 && n % (t * p) == 0, "t p must divide the devices");
  const std::uint32_t d = n / (t * p);
  RankGroups groups;
  groups.reserve(std::size_t{p} * t);
  for (std::uint32_t i = 0; i < p; ++i) {
    for (std::uint32_t j = 0; j < t; ++j) {
      auto& group = groups.emplace_back();
      for (std::uint32_t k = 0; k < d; ++k) group.push_back(i * (n / p) + j + k * t);
    }
  }
  return groups;
}

}  // namespace holmes::partition
