#include "model_table.hpp"

#include <algorithm>

#include "holmes/base/assert.hpp"
#include "holmes/partition/shards.hpp"

namespace holmes::actors {

namespace {

/// The tensor of that name, if it is one of the layer's.
ElementRange range_of(const std::string& name,
                      const std::vector<model::ParameterSpec>& parameters) {
  for (const auto& spec : parameters)
    if (spec.name == name) return {spec.offset, spec.offset + spec.count};
  return {};
}

}  // namespace

ElementRange intersect(const ElementRange& a, const ElementRange& b) {
  const ElementRange common{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return common.begin < common.end ? common : ElementRange{};
}

ChunkRange LayerTable::owned_chunks(std::size_t owner, std::size_t owners) const {
  const auto [first, last] = partition::shard_range(chunks.size(), owners, owner);
  return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last)};
}

ElementRange LayerTable::shard(std::size_t owner, std::size_t owners) const {
  const auto [first, last] = owned_chunks(owner, owners);
  if (first == last) return {};
  return {chunks[first].offset, chunks[last - 1].offset + chunks[last - 1].count};
}

ElementRange LayerTable::updated(std::size_t owner, std::size_t owners) const {
  const auto range = shard(owner, owners);
  const bool is_copy = std::any_of(parameters.begin(), parameters.end(),
                                   [](const auto& spec) { return spec.tied_copy; });
  if (!is_copy) return range;
  HOLMES_ASSERT(tied.begin == 0, "the tied copy comes first in its layer");
  return intersect(range, {tied.end, elements});
}

std::vector<LayerTable> model_table(const model::GptConfig& config) {
  std::vector<LayerTable> tables;
  const std::uint32_t head = config.layers + 1;
  for (std::uint32_t number = 0; number <= head; ++number) {
    LayerTable table;
    table.number = number;
    table.parameters = model::layer_parameters(config, number);
    table.chunks = model::chunks_of(table.parameters);
    for (const auto& spec : table.parameters) table.elements += spec.count;
    tables.push_back(std::move(table));
  }
  for (const auto& spec : tables.front().parameters)
    if (spec.tied_copy)
      for (auto* table : {&tables.front(), &tables.back()})
        table->tied = range_of(spec.name, table->parameters);
  return tables;
}

model::LayerRange layer_range(const partition::Plan& plan, StageIndex stage) {
  const auto& part = plan.stages.at(stage.index());
  model::LayerRange range;
  range.embedding = stage.value() == 0;
  range.first_block = part.first_block;
  range.block_count = part.last_block - part.first_block + 1;
  range.head = stage.index() + 1 == plan.stages.size();
  return range;
}

std::vector<std::uint32_t> stage_layers(const partition::Plan& plan, StageIndex stage,
                                        const model::GptConfig& config) {
  return model::layer_numbers(config, layer_range(plan, stage));
}

ElementRange tied_part(const LayerTable& head, std::size_t owner, std::size_t owners) {
  const auto common = intersect(head.shard(owner, owners), head.tied);
  if (common.empty()) return {};
  return {common.begin - head.tied.begin, common.end - head.tied.begin};
}

std::vector<TiedSlice> tied_slices(const LayerTable& embedding, std::size_t copy_owners,
                                   const LayerTable& head, std::size_t head_owners) {
  const auto within = [](const LayerTable& table, std::size_t owner, std::size_t owners) {
    const auto common = intersect(table.shard(owner, owners), table.tied);
    return common.empty()
               ? ElementRange{}
               : ElementRange{common.begin - table.tied.begin, common.end - table.tied.begin};
  };
  std::vector<TiedSlice> slices;
  for (std::size_t copy = 0; copy < copy_owners; ++copy)
    for (std::size_t owner = 0; owner < head_owners; ++owner) {
      const auto common =
          intersect(within(embedding, copy, copy_owners), within(head, owner, head_owners));
      if (!common.empty()) slices.push_back({copy, owner, common});
    }
  return slices;
}

}  // namespace holmes::actors
