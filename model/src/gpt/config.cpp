#include <cmath>
#include <string>
#include <utility>

#include "holmes/base/limits.hpp"
#include "holmes/model/gpt.hpp"

namespace holmes::model {
namespace {

Error invalid(const std::string& message) {
  return Error(ErrorCode::kInvalidArgument, message);
}

constexpr std::uint32_t kDimensionMax = 1U << 24;

/// The divisor of `whole` that is nearest to `wanted`, the smaller one of two.
std::uint32_t nearest_divisor(std::uint32_t whole, std::uint32_t wanted) {
  for (std::uint32_t distance = 0;; ++distance) {
    if (wanted > distance && whole % (wanted - distance) == 0) return wanted - distance;
    if (wanted + distance <= whole && whole % (wanted + distance) == 0) return wanted + distance;
    if (distance > whole && wanted <= distance) return 1;
  }
}

Error no_divisor(const std::string& key, std::uint32_t value, const std::string& whole_key,
                 std::uint32_t whole) {
  return invalid("model." + key + " = " + std::to_string(value) + " does not divide model." +
                 whole_key + " = " + std::to_string(whole) +
                 "; the nearest number of heads that does is " +
                 std::to_string(nearest_divisor(whole, value)));
}

Status check_dimensions(const GptConfig& config) {
  const struct {
    const char* key;
    std::uint32_t value;
    bool may_be_zero;
  } dimensions[] = {{"layers", config.layers, false},
                    {"heads", config.heads, false},
                    {"channels", config.channels, false},
                    {"sequence", config.sequence, false},
                    {"vocabulary", config.vocabulary, false},
                    {"vocabulary_padding", config.vocabulary_padding, false},
                    {"kv_heads", config.kv_heads, true},
                    {"head_channels", config.head_channels, true},
                    {"feed_forward", config.feed_forward, true}};
  for (const auto& [key, value, may_be_zero] : dimensions) {
    if (value == 0 && !may_be_zero)
      return invalid("model." + std::string(key) + " is 0; it must be at least 1");
    if (value > kDimensionMax)
      return invalid("model." + std::string(key) + " is " + std::to_string(value) + "; at most " +
                     std::to_string(kDimensionMax) + " is supported");
  }
  if (config.layers > limits::kLayersMax)
    return invalid("model.layers is " + std::to_string(config.layers) + "; at most " +
                   std::to_string(limits::kLayersMax) + " are supported");
  return {};
}

/// GPT-2 has none of Llama's keys; a value that changes nothing is let through.
Status check_gpt2(const GptConfig& config) {
  const GptConfig none;
  const std::pair<const char*, bool> keys[] = {
      {"kv_heads", config.kv_heads != none.kv_heads},
      {"head_channels", config.head_channels != none.head_channels},
      {"feed_forward", config.feed_forward != none.feed_forward},
      {"norm_epsilon", config.norm_epsilon != none.norm_epsilon},
      {"rope_theta", config.rope.theta != none.rope.theta},
      {"rope_factor", config.rope.factor != none.rope.factor},
      {"rope_low_factor", config.rope.low_factor != none.rope.low_factor},
      {"rope_high_factor", config.rope.high_factor != none.rope.high_factor},
      {"rope_original_sequence", config.rope.original_sequence != none.rope.original_sequence}};
  for (const auto& [key, is_set] : keys)
    if (is_set)
      return invalid("model." + std::string(key) +
                     " is a key of Llama, and model.family is \"gpt2\"; leave it out, or set "
                     "model.family = \"llama\"");
  if (config.head == Head::kUntied)
    return invalid(
        "model.head = \"untied\" is for model.family = \"llama\"; the head of GPT-2 is tied");
  if (config.channels % config.heads != 0)
    return no_divisor("heads", config.heads, "channels", config.channels);
  return {};
}

Status check_rope(const Rope& rope) {
  const auto above = [](double value, double least) {
    return std::isfinite(value) && value > least;
  };
  if (!above(rope.theta, 0)) return invalid("model.rope_theta must be a number above 0");
  if (!std::isfinite(rope.factor) || rope.factor < 1)
    return invalid("model.rope_factor must be at least 1; 1 changes nothing");
  if (!above(rope.low_factor, 0) || !above(rope.high_factor, rope.low_factor))
    return invalid(
        "model.rope_high_factor must be above model.rope_low_factor, and that above 0; those of "
        "Llama 3.1 are 4 and 1");
  if (rope.original_sequence == 0)
    return invalid("model.rope_original_sequence is 0; it must be at least 1");
  return {};
}

Status check_llama(const GptConfig& config) {
  if (config.head_channels == 0 && config.channels % config.heads != 0)
    return no_divisor("heads", config.heads, "channels", config.channels);
  if (config.heads % config.kv_head_count() != 0)
    return no_divisor("kv_heads", config.kv_heads, "heads", config.heads);
  if (config.head_width() % 2 != 0)
    return invalid("a head has " + std::to_string(config.head_width()) +
                   " channels (model.head_channels, or model.channels / model.heads); rotary "
                   "embeddings turn pairs of them, so that the number must be even");
  if (!(config.norm_epsilon > 0 && config.norm_epsilon < 1))
    return invalid("model.norm_epsilon must lie between 0 and 1, such as 1e-5");
  return check_rope(config.rope);
}

}  // namespace

std::string_view to_string(Family family) {
  return family == Family::kLlama ? "llama" : "gpt2";
}

bool GptConfig::tied() const {
  return head == Head::kDefault ? family == Family::kGpt2 : head == Head::kTied;
}

std::uint32_t GptConfig::feed_forward_width() const {
  if (feed_forward != 0) return feed_forward;
  if (family == Family::kGpt2) return 4 * channels;
  constexpr std::uint64_t kMultiple = 256;
  const std::uint64_t width = std::uint64_t{8} * channels / 3;
  return static_cast<std::uint32_t>((width + kMultiple - 1) / kMultiple * kMultiple);
}

Status validate(const GptConfig& config) {
  HOLMES_TRY(check_dimensions(config));
  return config.family == Family::kLlama ? check_llama(config) : check_gpt2(config);
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
