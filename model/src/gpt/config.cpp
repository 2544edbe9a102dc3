#include <string>

#include "holmes/base/limits.hpp"
#include "holmes/model/gpt.hpp"

namespace holmes::model {
namespace {

Error invalid(const std::string& message) {
  return Error(ErrorCode::kInvalidArgument, message);
}

/// The divisor of `channels` that is nearest to `wanted`, the smaller one of two.
std::uint32_t nearest_divisor(std::uint32_t channels, std::uint32_t wanted) {
  for (std::uint32_t distance = 0;; ++distance) {
    if (wanted > distance && channels % (wanted - distance) == 0) return wanted - distance;
    if (wanted + distance <= channels && channels % (wanted + distance) == 0)
      return wanted + distance;
    if (distance > channels && wanted <= distance) return 1;
  }
}

}  // namespace

Status validate(const GptConfig& config) {
  const struct {
    const char* key;
    std::uint32_t value;
  } positive[] = {
      {"layers", config.layers},         {"heads", config.heads},
      {"channels", config.channels},     {"sequence", config.sequence},
      {"vocabulary", config.vocabulary}, {"vocabulary_padding", config.vocabulary_padding}};
  for (const auto& [key, value] : positive)
    if (value == 0) return invalid("model." + std::string(key) + " is 0; it must be at least 1");
  if (config.layers > limits::kLayersMax)
    return invalid("model.layers is " + std::to_string(config.layers) + "; at most " +
                   std::to_string(limits::kLayersMax) + " are supported");
  if (config.channels % config.heads != 0)
    return invalid("model.heads = " + std::to_string(config.heads) +
                   " does not divide model.channels = " + std::to_string(config.channels) +
                   "; the nearest number of heads that does is " +
                   std::to_string(nearest_divisor(config.channels, config.heads)));
  constexpr std::uint32_t kDimensionMax = 1U << 24;
  for (const auto& [key, value] : positive)
    if (value > kDimensionMax)
      return invalid("model." + std::string(key) + " is " + std::to_string(value) + "; at most " +
                     std::to_string(kDimensionMax) + " is supported");
  return {};
}

LayerRange whole_model(const GptConfig& config) {
  return {.embedding = true, .first_block = 0, .block_count = config.layers, .head = true};
}

std::vector<std::uint32_t> layer_numbers(const GptConfig& config, const LayerRange& range) {
  std::vector<std::uint32_t> numbers;
  if (range.embedding) numbers.push_back(0);
  for (std::uint32_t i = 0; i < range.block_count; ++i)
    numbers.push_back(range.first_block + i + 1);
  if (range.head) numbers.push_back(config.layers + 1);
  return numbers;
}

}  // namespace holmes::model
