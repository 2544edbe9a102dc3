#include "gpt/parameters.hpp"

#include <cmath>
#include <numeric>
#include <utility>

#include "holmes/base/assert.hpp"

namespace holmes::model {
namespace {

constexpr float kDeviation = 0.02F;
constexpr const char* kGpt2Table = "wte.weight";
constexpr const char* kLlamaTable = "model.embed_tokens.weight";
constexpr const char* kLlamaHead = "lm_head.weight";

class Builder {
 public:
  void matrix(std::string name, std::size_t rows, std::size_t columns,
              float deviation = kDeviation) {
    append({.name = std::move(name),
            .shape = {rows, columns},
            .decay = true,
            .init_stddev = deviation});
  }
  void vector(std::string name, std::size_t count, float value) {
    append({.name = std::move(name), .shape = {count}, .init_value = value});
  }
  ParameterSpec& last() { return list_.back(); }
  std::vector<ParameterSpec> take() { return std::move(list_); }

 private:
  void append(ParameterSpec spec) {
    spec.count =
        std::accumulate(spec.shape.begin(), spec.shape.end(), std::size_t{1}, std::multiplies<>());
    spec.offset = total_count(list_);
    list_.push_back(std::move(spec));
  }

  std::vector<ParameterSpec> list_;
};

/// Each block adds two terms to the residual stream; their sum should keep its size.
float residual_deviation(const GptConfig& config) {
  return kDeviation / std::sqrt(2.0F * static_cast<float>(config.layers));
}

std::vector<ParameterSpec> gpt2_block(const GptConfig& config, std::uint32_t index) {
  const std::size_t c = config.channels;
  const std::string prefix = "h." + std::to_string(index) + ".";
  const float residual = residual_deviation(config);
  Builder build;
  build.vector(prefix + "ln_1.weight", c, 1);
  build.vector(prefix + "ln_1.bias", c, 0);
  build.matrix(prefix + "attn.c_attn.weight", c, 3 * c);
  build.vector(prefix + "attn.c_attn.bias", 3 * c, 0);
  build.matrix(prefix + "attn.c_proj.weight", c, c, residual);
  build.vector(prefix + "attn.c_proj.bias", c, 0);
  build.vector(prefix + "ln_2.weight", c, 1);
  build.vector(prefix + "ln_2.bias", c, 0);
  build.matrix(prefix + "mlp.c_fc.weight", c, 4 * c);
  build.vector(prefix + "mlp.c_fc.bias", 4 * c, 0);
  build.matrix(prefix + "mlp.c_proj.weight", 4 * c, c, residual);
  build.vector(prefix + "mlp.c_proj.bias", c, 0);
  return build.take();
}

/// Matrices that are multiplied with the same rows follow one another, so that they are one matrix
/// in the flat array.
std::vector<ParameterSpec> llama_block(const GptConfig& config, std::uint32_t index) {
  const std::size_t c = config.channels;
  const std::size_t queries = std::size_t{config.heads} * config.head_width();
  const std::size_t keys = std::size_t{config.kv_head_count()} * config.head_width();
  const std::size_t wide = config.feed_forward_width();
  const std::string prefix = "model.layers." + std::to_string(index) + ".";
  const float residual = residual_deviation(config);
  Builder build;
  build.vector(prefix + "input_layernorm.weight", c, 1);
  build.matrix(prefix + "self_attn.q_proj.weight", queries, c);
  build.matrix(prefix + "self_attn.k_proj.weight", keys, c);
  build.matrix(prefix + "self_attn.v_proj.weight", keys, c);
  build.matrix(prefix + "self_attn.o_proj.weight", c, queries, residual);
  build.vector(prefix + "post_attention_layernorm.weight", c, 1);
  build.matrix(prefix + "mlp.gate_proj.weight", wide, c);
  build.matrix(prefix + "mlp.up_proj.weight", wide, c);
  build.matrix(prefix + "mlp.down_proj.weight", c, wide, residual);
  return build.take();
}

}  // namespace

std::vector<ParameterSpec> embedding_parameters(const GptConfig& config) {
  const bool gpt2 = config.family == Family::kGpt2;
  Builder build;
  build.matrix(gpt2 ? kGpt2Table : kLlamaTable, config.padded_vocabulary(), config.channels);
  build.last().tied_copy = config.tied();
  if (gpt2) build.matrix("wpe.weight", config.sequence, config.channels);
  return build.take();
}

std::vector<ParameterSpec> block_parameters(const GptConfig& config, std::uint32_t index) {
  return config.family == Family::kGpt2 ? gpt2_block(config, index) : llama_block(config, index);
}

std::vector<ParameterSpec> head_parameters(const GptConfig& config) {
  Builder build;
  if (config.family == Family::kGpt2) {
    build.vector("ln_f.weight", config.channels, 1);
    build.vector("ln_f.bias", config.channels, 0);
  } else {
    build.vector("model.norm.weight", config.channels, 1);
  }
  // A tied matrix lives here; the embedding's copy has the same name.
  const char* tied = config.family == Family::kGpt2 ? kGpt2Table : kLlamaTable;
  build.matrix(config.tied() ? tied : kLlamaHead, config.padded_vocabulary(), config.channels);
  return build.take();
}

bool is_token_table(std::string_view name) {
  return name == kGpt2Table || name == kLlamaTable || name == kLlamaHead;
}

std::vector<ParameterSpec> layer_parameters(const GptConfig& config, std::uint32_t number) {
  HOLMES_ASSERT(number <= config.layers + 1, "the model has no such layer");
  if (number == 0) return embedding_parameters(config);
  if (number == config.layers + 1) return head_parameters(config);
  return block_parameters(config, number - 1);
}

std::size_t total_count(const std::vector<ParameterSpec>& parameters) {
  return parameters.empty() ? 0 : parameters.back().offset + parameters.back().count;
}

}  // namespace holmes::model
