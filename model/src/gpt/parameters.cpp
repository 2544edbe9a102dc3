#include "gpt/parameters.hpp"

#include <cmath>
#include <numeric>
#include <utility>

#include "holmes/base/assert.hpp"

namespace holmes::model {
namespace {

constexpr float kDeviation = 0.02F;

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

}  // namespace

std::vector<ParameterSpec> embedding_parameters(const GptConfig& config) {
  Builder build;
  build.matrix("wte.weight", config.padded_vocabulary(), config.channels);
  build.last().tied_copy = true;
  build.matrix("wpe.weight", config.sequence, config.channels);
  return build.take();
}

std::vector<ParameterSpec> block_parameters(const GptConfig& config, std::uint32_t index) {
  const std::size_t c = config.channels;
  const std::string prefix = "h." + std::to_string(index) + ".";
  // Each block adds two terms to the residual stream; their sum should keep its size.
  const float residual = kDeviation / std::sqrt(2.0F * static_cast<float>(config.layers));
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

std::vector<ParameterSpec> head_parameters(const GptConfig& config) {
  Builder build;
  build.vector("ln_f.weight", config.channels, 1);
  build.vector("ln_f.bias", config.channels, 0);
  // The tied matrix lives here; the embedding's copy has the same name.
  build.matrix("wte.weight", config.padded_vocabulary(), config.channels);
  return build.take();
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
