// Goal: the cpu engine computes what the oracle computes, on shapes that end in the middle of
// vectors and of attention blocks; gives the same bits on every call, at any address and on any
// thread; adds to gradients; and allocates nothing once its layers exist.
#include <csignal>
#include <thread>

#include <sys/time.h>

#include <gtest/gtest.h>

#include "count_allocations.hpp"
#include "holmes/base/random.hpp"
#include "whole_model.hpp"

namespace holmes::model {
namespace {

struct Case {
  const char* name;
  GptConfig config;
  MicroBatchShape shape;
};

GptConfig llama(GptConfig config, std::uint32_t kv_heads, std::uint32_t head_channels,
                std::uint32_t feed_forward, Head head = Head::kUntied) {
  config.family = Family::kLlama;
  config.kv_heads = kv_heads;
  config.head_channels = head_channels;
  config.feed_forward = feed_forward;
  config.head = head;
  return config;
}

const Case kCases[] = {
    {"even", {2, 2, 32, 64, 64, 64}, {2, 64}},
    {"odd_everything", {2, 5, 35, 80, 131, 8}, {3, 71}},
    {"one_token", {1, 1, 16, 4, 17, 1}, {1, 1}},
    {"several_blocks", {1, 3, 48, 200, 300, 64}, {1, 193}},
    {"llama_even", llama({2, 4, 64, 64, 64, 64}, 2, 0, 128), {2, 64}},
    {"llama_odd_everything", llama({2, 6, 35, 80, 131, 8}, 3, 14, 67), {3, 71}},
    {"llama_one_token", llama({1, 1, 16, 4, 17, 1}, 1, 0, 24), {1, 1}},
    {"llama_several_blocks", llama({1, 6, 48, 200, 300, 64}, 1, 0, 100, Head::kTied), {1, 193}},
};

std::vector<std::int32_t> random_tokens(const Case& c, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::int32_t> tokens(std::size_t{c.shape.samples} * c.shape.tokens);
  for (auto& token : tokens) token = static_cast<std::int32_t>(random.below(c.config.vocabulary));
  return tokens;
}

/// Initial values as in training, but large enough that every gradient has size.
void fill(WholeModel& model, std::uint64_t seed) {
  model.initialise_all(seed);
  Random random(seed);
  for (auto& each : model.layers())
    for (float& value : each.parameters.span())
      value = 4 * value + static_cast<float>(0.1 * (random.uniform() - 0.5));
  model.copy_tied_values();
}

std::vector<float> copy_of(std::span<const float> values) {
  return {values.begin(), values.end()};
}

/// Every bit that a pass gives: loss and gradients.
std::vector<float> results(WholeModel& model, const Case& c) {
  const auto tokens = random_tokens(c, 1);
  const auto targets = random_tokens(c, 2);
  model.zero_gradients();
  std::vector<float> all = {model.forward(tokens, targets)};
  model.backward(tokens, targets, 0.7F);
  for (auto& each : model.layers()) {
    const auto gradients = copy_of(each.gradients.span());
    all.insert(all.end(), gradients.begin(), gradients.end());
  }
  return all;
}

/// The largest difference, as a share of the largest value.
double difference(std::span<const float> actual, std::span<const float> expected) {
  double largest = 0;
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(double{expected[i]}));
    worst = std::max(worst, std::abs(double{actual[i]} - expected[i]));
  }
  return worst / std::max(largest, 1e-30);
}

bool is_of_queries_or_keys(const std::string& name) {
  for (const char* part : {"c_attn", "q_proj", "k_proj"})
    if (name.find(part) != std::string::npos) return true;
  return false;
}

class CpuEngine : public testing::TestWithParam<Case> {};

TEST_P(CpuEngine, AgreesWithTheReference) {
  const Case& c = GetParam();
  const auto fast = make_cpu_engine();
  const auto plain = make_reference_engine();
  WholeModel model(c.config, c.shape, *fast);
  WholeModel oracle(c.config, c.shape, *plain);
  fill(model, 3);
  fill(oracle, 3);
  const auto actual = results(model, c);
  const auto expected = results(oracle, c);
  EXPECT_NEAR(actual[0], expected[0], 2e-6 * expected[0]);
  for (std::size_t i = 0; i < model.layers().size(); ++i) {
    ASSERT_EQ(model.layers()[i].layer->parameter_count(),
              oracle.layers()[i].layer->parameter_count());
    for (const auto& spec : model.layers()[i].layer->parameters()) {
      // With one token the gradients of queries and keys are zero but for rounding.
      if (c.shape.tokens == 1 && is_of_queries_or_keys(spec.name)) continue;
      EXPECT_LT(difference(model.layers()[i].gradients.span().subspan(spec.offset, spec.count),
                           oracle.layers()[i].gradients.span().subspan(spec.offset, spec.count)),
                1e-5)
          << spec.name;
    }
  }
  std::vector<float> logits(std::size_t{c.shape.samples} * c.shape.tokens * c.config.vocabulary);
  auto expected_logits = logits;
  fast->logits(c.config, model.head().parameters.span(), model.head_input(), logits);
  plain->logits(c.config, oracle.head().parameters.span(), oracle.head_input(), expected_logits);
  // SwiGLU multiplies what two matrices gave, and with it their roundings.
  EXPECT_LT(difference(logits, expected_logits), c.config.family == Family::kGpt2 ? 2e-6 : 1e-5);
}

TEST_P(CpuEngine, GivesTheSameBitsAgainElsewhereAndOnAnotherThread) {
  const Case& c = GetParam();
  const auto engine = make_cpu_engine();
  WholeModel model(c.config, c.shape, *engine);
  fill(model, 3);
  const auto first = results(model, c);
  EXPECT_EQ(results(model, c), first);

  const auto other_engine = make_cpu_engine();
  const Buffer in_between = Buffer::allocate(4096 + 64);
  WholeModel elsewhere(c.config, c.shape, *other_engine);
  fill(elsewhere, 3);
  EXPECT_EQ(results(elsewhere, c), first);

  std::vector<float> on_thread;
  std::thread thread([&] { on_thread = results(model, c); });
  thread.join();
  EXPECT_EQ(on_thread, first);
}

TEST_P(CpuEngine, AllocatesNothingOnceItsLayersExist) {
  const Case& c = GetParam();
  const auto engine = make_cpu_engine();
  WholeModel model(c.config, c.shape, *engine);
  fill(model, 3);
  const auto tokens = random_tokens(c, 1);
  const auto targets = random_tokens(c, 2);
  model.forward(tokens, targets);
  model.backward(tokens, targets, 1);
  const auto before = allocation_count();
  model.forward(tokens, targets);
  model.backward(tokens, targets, 1);
  EXPECT_EQ(allocation_count(), before);
}

TEST_P(CpuEngine, AddsToGradients) {
  const Case& c = GetParam();
  const auto engine = make_cpu_engine();
  WholeModel model(c.config, c.shape, *engine);
  fill(model, 3);
  const auto once = results(model, c);
  const auto tokens = random_tokens(c, 1);
  const auto targets = random_tokens(c, 2);
  model.backward(tokens, targets, 0.7F);
  std::size_t at = 1;
  for (auto& each : model.layers()) {
    auto doubled = copy_of(std::span(once).subspan(at, each.gradients.span().size()));
    for (float& value : doubled) value *= 2;
    EXPECT_LT(difference(each.gradients.span(), doubled), 2e-6);
    at += doubled.size();
  }
}

// Layers keep nothing between forward and backward: with several micro-batches in flight, only
// the stash says which one is meant.
TEST_P(CpuEngine, StashesKeepMicroBatchesApart) {
  const Case& c = GetParam();
  const auto engine = make_cpu_engine();
  WholeModel model(c.config, c.shape, *engine);
  fill(model, 3);
  auto& block = model.layers()[1];
  const std::size_t count = std::size_t{c.shape.samples} * c.shape.tokens * c.config.channels;
  std::vector<std::vector<float>> inputs(2, std::vector<float>(count));
  Random random(5);
  for (auto& input : inputs)
    for (float& value : input) value = static_cast<float>(random.uniform() - 0.5);
  const std::vector<float> dy(count, 0.1F);
  std::vector<float> y(count);
  std::vector<Buffer> stashes;
  const auto forward = [&](std::size_t i) {
    block.layer->forward({.parameters = block.parameters.span(),
                          .input = inputs[i],
                          .output = y,
                          .stash = stashes[i].mutable_bytes()});
  };
  const auto backward = [&](std::size_t i) {
    std::vector<float> dx(count);
    block.layer->backward({.parameters = block.parameters.span(),
                           .input = inputs[i],
                           .stash = stashes[i].bytes(),
                           .output_gradient = dy,
                           .input_gradient = dx,
                           .gradients = block.gradients.span()});
    return dx;
  };
  for (int i = 0; i < 2; ++i) stashes.push_back(Buffer::allocate(block.layer->stash_bytes()));
  std::vector<std::vector<float>> alone(2);
  for (std::size_t i = 0; i < 2; ++i) {
    forward(i);
    alone[i] = backward(i);
  }
  forward(0);
  forward(1);
  EXPECT_EQ(backward(0), alone[0]);
  EXPECT_EQ(backward(1), alone[1]);
}

extern "C" void do_nothing(int) {}

// oneDNN's sgemm holds other things in the stack pointer: a handler on this stack would destroy
// memory.
TEST_P(CpuEngine, IsNotDisturbedBySignals) {
  const Case& c = GetParam();
  const auto engine = make_cpu_engine();
  WholeModel model(c.config, c.shape, *engine);
  fill(model, 3);
  const auto expected = results(model, c);
  struct sigaction handler = {};
  handler.sa_handler = do_nothing;
  struct sigaction before = {};
  ASSERT_EQ(sigaction(SIGALRM, &handler, &before), 0);
  const itimerval often = {{0, 100}, {0, 100}};
  const itimerval never = {};
  ASSERT_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(results(model, c), expected);
  ASSERT_EQ(setitimer(ITIMER_REAL, &never, nullptr), 0);
  sigaction(SIGALRM, &before, nullptr);
}

INSTANTIATE_TEST_SUITE_P(Shapes, CpuEngine, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Layers, SayWhatTheyCost) {
  const GptConfig config;
  const MicroBatchShape shape = {.samples = 4, .tokens = 256};
  const auto engine = make_cpu_engine();
  const auto layers = make_layers(config, whole_model(config), shape, *engine);
  ASSERT_EQ(layers.size(), 8U);
  EXPECT_EQ(layers[0]->forward_flops(), 0);
  EXPECT_EQ(layers[1]->forward_flops(), 1024.0 * (24 * 384 * 384 + 4 * 256 * 384));
  EXPECT_EQ(layers[7]->forward_flops(), 1024.0 * 2 * 384 * 256);
  EXPECT_EQ(layers[1]->parameter_count(), 12U * 384 * 384 + 13 * 384);
}

TEST(Layers, OfLlamaSayWhatTheyCost) {
  const GptConfig config = llama({2, 6, 384, 256, 256, 64}, 2, 32, 1024);
  const MicroBatchShape shape = {.samples = 4, .tokens = 256};
  const auto engine = make_cpu_engine();
  const auto layers = make_layers(config, whole_model(config), shape, *engine);
  ASSERT_EQ(layers.size(), 4U);
  // Queries and outputs 192 wide, keys and values 64.
  const std::size_t weights = 384 * (2 * 192 + 2 * 64) + 3 * 384 * 1024;
  EXPECT_EQ(layers[1]->forward_flops(), 1024.0 * static_cast<double>(2 * weights + 4 * 256 * 192));
  EXPECT_EQ(layers[1]->parameter_count(), weights + 2 * 384);
  EXPECT_EQ(layers[0]->parameter_count(), 256U * 384);
  EXPECT_EQ(layers[3]->parameter_count(), 256U * 384 + 384);
}

// Weight decay is for matrices.
TEST(Layers, NormsOfLlamaDoNotDecay) {
  const GptConfig config = llama({1, 4, 64, 64, 64, 64}, 2, 0, 128);
  for (std::uint32_t number = 0; number <= 2; ++number)
    for (const auto& spec : layer_parameters(config, number)) {
      const bool is_norm = spec.name.find("norm") != std::string::npos;
      EXPECT_EQ(spec.decay, !is_norm) << spec.name;
      EXPECT_EQ(spec.shape.size(), is_norm ? 1U : 2U) << spec.name;
    }
}

}  // namespace
}  // namespace holmes::model
