// Goal: however many owners there are, every element of every layer has one owner, and the tied
// matrix's two gradients meet element by element. Method: count elements over all owner numbers.
#include "model_table.hpp"

#include <gtest/gtest.h>

namespace holmes::actors {
namespace {

/// Large enough that the tied matrix has several chunks (64 Ki elements each).
const model::GptConfig kModel{2, 2, 512, 16, 500, 64};

TEST(ModelTable, HasEveryLayerWithItsChunks) {
  const auto table = model_table(kModel);
  ASSERT_EQ(table.size(), 4U);
  for (std::uint32_t number = 0; number < table.size(); ++number) {
    const auto& layer = table[number];
    EXPECT_EQ(layer.number, number);
    std::size_t next = 0;
    for (const auto& chunk : layer.chunks) {
      EXPECT_EQ(chunk.offset, next);
      next += chunk.count;
    }
    EXPECT_EQ(next, layer.elements);
    EXPECT_EQ(layer.tied.empty(), number == 1 || number == 2);
  }
  EXPECT_EQ(table[0].tied.size(), std::size_t{512} * 512);  // 500 rows are padded to 512
  EXPECT_EQ(table[3].tied.size(), table[0].tied.size());
}

model::GptConfig llama(model::Head head) {
  auto config = kModel;
  config.family = model::Family::kLlama;
  config.head = head;
  return config;
}

TEST(ModelTable, AnUntiedHeadHasNothingInCommonWithTheEmbedding) {
  const auto table = model_table(llama(model::Head::kUntied));
  for (const auto& layer : table) {
    EXPECT_TRUE(layer.tied.empty());
    EXPECT_EQ(layer.updated(1, 3), layer.shard(1, 3));
  }
  EXPECT_TRUE(tied_slices(table.front(), 3, table.back(), 4).empty());
  EXPECT_TRUE(tied_part(table.back(), 0, 2).empty());
}

TEST(ModelTable, ATiedHeadOfLlamaIsTheWholeEmbedding) {
  const auto table = model_table(llama(model::Head::kTied));
  EXPECT_EQ(table.front().tied.size(), table.front().elements);
  EXPECT_EQ(table.back().tied, (ElementRange{512, 512 + table.front().elements}));
  for (std::size_t owner = 0; owner < 3; ++owner)
    EXPECT_TRUE(table.front().updated(owner, 3).empty());
}

TEST(ModelTable, ShardsCoverEachLayerOnceInOrder) {
  for (const auto& layer : model_table(kModel))
    for (std::size_t owners = 1; owners <= 40; ++owners) {
      std::size_t next = 0;
      for (std::size_t owner = 0; owner < owners; ++owner) {
        const auto shard = layer.shard(owner, owners);
        if (shard.empty()) continue;
        EXPECT_EQ(shard.begin, next);
        next = shard.end;
      }
      EXPECT_EQ(next, layer.elements) << "layer " << layer.number << ", " << owners << " owners";
    }
}

TEST(ModelTable, OwnersUpdateEverythingButTheTiedCopy) {
  for (const auto& layer : model_table(kModel))
    for (std::size_t owners = 1; owners <= 12; ++owners) {
      std::size_t updated = 0;
      for (std::size_t owner = 0; owner < owners; ++owner) {
        const auto range = layer.updated(owner, owners);
        updated += range.size();
        EXPECT_TRUE(range.empty() || intersect(range, layer.shard(owner, owners)) == range);
        if (layer.number == 0) {
          EXPECT_TRUE(intersect(range, layer.tied).empty());
        }
      }
      EXPECT_EQ(updated, layer.elements - (layer.number == 0 ? layer.tied.size() : 0));
    }
}

TEST(ModelTable, TiedSlicesPairEveryElementOfBothMatricesOnce) {
  const auto table = model_table(kModel);
  const auto& embedding = table.front();
  const auto& head = table.back();
  for (std::size_t copies = 1; copies <= 7; ++copies)
    for (std::size_t heads = 1; heads <= 7; ++heads) {
      std::vector<int> seen(head.tied.size());
      for (const auto& slice : tied_slices(embedding, copies, head, heads)) {
        ASSERT_FALSE(slice.elements.empty());
        const ElementRange in_copy{embedding.tied.begin + slice.elements.begin,
                                   embedding.tied.begin + slice.elements.end};
        const ElementRange in_head{head.tied.begin + slice.elements.begin,
                                   head.tied.begin + slice.elements.end};
        EXPECT_EQ(intersect(in_copy, embedding.shard(slice.copy_owner, copies)), in_copy);
        EXPECT_EQ(intersect(in_head, head.shard(slice.head_owner, heads)), in_head);
        for (auto i = slice.elements.begin; i < slice.elements.end; ++i) ++seen[i];
      }
      EXPECT_EQ(seen, std::vector<int>(seen.size(), 1)) << copies << " copies, " << heads;
    }
}

TEST(ModelTable, IntersectionsAreCommonElements) {
  EXPECT_EQ(intersect({2, 8}, {5, 12}), (ElementRange{5, 8}));
  EXPECT_TRUE(intersect({2, 5}, {5, 9}).empty());
  EXPECT_TRUE(intersect({7, 9}, {1, 3}).empty());
}

}  // namespace
}  // namespace holmes::actors
