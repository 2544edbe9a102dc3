// Goal: the published group formulas, exactly. Method: the paper's example, and counting.
#include "holmes/partition/groups.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace holmes::partition {
namespace {

TEST(Groups, PublishedExample) {
  EXPECT_EQ(data_groups(16, 2, 4),
            (RankGroups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
  EXPECT_EQ(tensor_groups(16, 2),
            (RankGroups{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}}));
  EXPECT_EQ(pipeline_groups(16, 4),
            (RankGroups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
}

TEST(Groups, WithoutTensorParallelism) {
  EXPECT_EQ(data_groups(16, 1, 4),
            (RankGroups{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}}));
  EXPECT_EQ(tensor_groups(3, 1), (RankGroups{{0}, {1}, {2}}));
  EXPECT_EQ(data_groups(4, 1, 1), (RankGroups{{0, 1, 2, 3}}));
  EXPECT_EQ(pipeline_groups(4, 1), (RankGroups{{0}, {1}, {2}, {3}}));
}

void expect_partition(const RankGroups& groups, std::uint32_t n, std::size_t size) {
  std::vector<std::uint32_t> all;
  for (const auto& group : groups) {
    EXPECT_EQ(group.size(), size);
    all.insert(all.end(), group.begin(), group.end());
  }
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), n);
  for (std::uint32_t i = 0; i < n; ++i) EXPECT_EQ(all[i], i);
}

TEST(Groups, EachKindPartitionsTheDevices) {
  for (std::uint32_t t = 1; t <= 4; ++t) {
    for (std::uint32_t p = 1; p <= 5; ++p) {
      for (std::uint32_t d = 1; d <= 4; ++d) {
        const std::uint32_t n = t * p * d;
        expect_partition(tensor_groups(n, t), n, t);
        expect_partition(pipeline_groups(n, p), n, p);
        expect_partition(data_groups(n, t, p), n, d);
      }
    }
  }
}

TEST(GroupsDeathTest, DegreesMustDivide) {
  EXPECT_DEATH(std::ignore = tensor_groups(5, 2), "must divide");
  EXPECT_DEATH(std::ignore = data_groups(12, 2, 4), "must divide");
  EXPECT_DEATH(std::ignore = pipeline_groups(12, 0), "must divide");
}

}  // namespace
}  // namespace holmes::partition
