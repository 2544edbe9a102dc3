#include "holmes/base/assert.hpp"
#include "holmes/model/gpt.hpp"

namespace holmes::model {

std::vector<std::unique_ptr<Layer>> make_layers(const GptConfig& config, const LayerRange& range,
                                                const MicroBatchShape& shape, Engine& engine) {
  HOLMES_ASSERT(validate(config), "layers of an invalid model were asked for");
  HOLMES_ASSERT(range.first_block + range.block_count <= config.layers, "more blocks than layers");
  HOLMES_ASSERT(shape.samples > 0 && shape.tokens > 0 && shape.tokens <= config.sequence,
                "a micro-batch does not fit the model");
  std::vector<std::unique_ptr<Layer>> layers;
  if (range.embedding) layers.push_back(engine.make_embedding(config, shape));
  for (std::uint32_t i = 0; i < range.block_count; ++i)
    layers.push_back(engine.make_block(config, shape, range.first_block + i));
  if (range.head) layers.push_back(engine.make_head(config, shape));
  return layers;
}

}  // namespace holmes::model
