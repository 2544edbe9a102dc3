// Goal: the oracle's gradients are right. Method: central differences in double precision of a
// random linear function of each layer's output, for every parameter and input of a small model.
#include <numeric>

#include <gtest/gtest.h>

#include "holmes/base/random.hpp"
#include "reference/llama_passes.hpp"
#include "reference/passes.hpp"

namespace holmes::model::reference {
namespace {

using Vector = std::vector<double>;

constexpr GptConfig kConfig = {.layers = 1,
                               .heads = 2,
                               .channels = 6,
                               .sequence = 5,
                               .vocabulary = 7,
                               .vocabulary_padding = 4};
constexpr MicroBatchShape kShape = {.samples = 2, .tokens = 4};
const Dims kDims(kConfig, kShape);

/// Four heads on two of keys and values.
GptConfig llama_config() {
  GptConfig config = kConfig;
  config.family = Family::kLlama;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_channels = 4;
  config.feed_forward = 5;
  config.rope = {.theta = 10, .factor = 4, .original_sequence = 16};
  return config;
}

Vector random_vector(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  Vector values(count);
  for (double& value : values) value = 2 * random.uniform() - 1;
  return values;
}

std::vector<std::int32_t> random_tokens(std::uint64_t seed) {
  Random random(seed);
  std::vector<std::int32_t> tokens(kDims.rows());
  for (auto& token : tokens) token = static_cast<std::int32_t>(random.below(kConfig.vocabulary));
  return tokens;
}

double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// Compares `gradient` with differences of `objective` over each element of `at`.
template <class Objective>
void expect_gradient(Vector& at, const Vector& gradient, const Objective& objective) {
  ASSERT_EQ(at.size(), gradient.size());
  constexpr double kStep = 1e-5;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double value = at[i];
    at[i] = value + kStep;
    const double up = objective();
    at[i] = value - kStep;
    const double down = objective();
    at[i] = value;
    EXPECT_NEAR(gradient[i], (up - down) / (2 * kStep), 1e-8) << "element " << i;
  }
}

void expect_embedding_gradient(const GptConfig& config) {
  const auto specs = embedding_parameters(config);
  const EmbeddingPass<double> pass{kDims, specs};
  Vector parameters = random_vector(total_count(specs), 1);
  const Vector weights = random_vector(kDims.rows() * kDims.C, 2);
  const auto tokens = random_tokens(3);
  Vector gradients(parameters.size());
  pass.backward(tokens.data(), weights.data(), gradients.data());
  expect_gradient(parameters, gradients, [&] {
    Vector y(weights.size());
    pass.forward(parameters.data(), tokens.data(), y.data());
    return dot(y, weights);
  });
}

template <class Pass>
void expect_block_gradient(const Pass& pass, std::size_t stash_count) {
  Vector parameters = random_vector(total_count(pass.specs), 1);
  Vector x = random_vector(kDims.rows() * kDims.C, 2);
  const Vector weights = random_vector(x.size(), 3);
  Vector stash(stash_count);
  const auto objective = [&] {
    Vector y(x.size());
    pass.forward(parameters.data(), x.data(), stash.data(), y.data());
    return dot(y, weights);
  };
  objective();
  Vector dx(x.size());
  Vector gradients(parameters.size());
  pass.backward(parameters.data(), x.data(), stash.data(), weights.data(), dx.data(),
                gradients.data());
  expect_gradient(x, dx, objective);
  expect_gradient(parameters, gradients, objective);
}

void expect_head_gradient(const GptConfig& config) {
  const auto specs = head_parameters(config);
  const HeadPass<double> pass(config, kShape, specs);
  Vector parameters = random_vector(total_count(specs), 1);
  Vector x = random_vector(kDims.rows() * kDims.C, 2);
  const auto targets = random_tokens(3);
  const auto objective = [&] {
    return 0.5 * pass.forward(parameters.data(), x.data(), targets.data());
  };
  Vector dx(x.size());
  Vector gradients(parameters.size());
  pass.backward(parameters.data(), x.data(), targets.data(), 0.5, dx.data(), gradients.data());
  expect_gradient(x, dx, objective);
  expect_gradient(parameters, gradients, objective);
}

TEST(ReferenceGradient, Embedding) {
  expect_embedding_gradient(kConfig);
}

TEST(ReferenceGradient, EmbeddingOfLlama) {
  expect_embedding_gradient(llama_config());
}

TEST(ReferenceGradient, Block) {
  const auto specs = block_parameters(kConfig, 0);
  expect_block_gradient(BlockPass<double>{kDims, specs}, BlockStash<double>::count(kDims));
}

TEST(ReferenceGradient, BlockOfLlama) {
  const GptConfig config = llama_config();
  const Dims dims(config, kShape);
  const auto specs = block_parameters(config, 0);
  expect_block_gradient(LlamaBlockPass<double>{dims, specs, config.rope, config.norm_epsilon},
                        LlamaBlockStash<double>::count(dims));
}

TEST(ReferenceGradient, Head) {
  expect_head_gradient(kConfig);
}

TEST(ReferenceGradient, HeadOfLlama) {
  expect_head_gradient(llama_config());
}

}  // namespace
}  // namespace holmes::model::reference
