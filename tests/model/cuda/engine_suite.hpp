#pragma once

// What every engine on a device must do, whatever the device: an emulated one in the unit tests, a
// GPU in those labelled gpu. The test that includes this says how engines are made.

#include <gtest/gtest.h>

#include "holmes/base/random.hpp"
#include "whole_model.hpp"

namespace holmes::model {

struct DeviceCase {
  const char* name;
  GptConfig config;
  MicroBatchShape shape;
};

inline std::ostream& operator<<(std::ostream& out, const DeviceCase& c) {
  return out << c.name;
}

/// An engine, or why there is none: then the test is skipped.
Result<std::unique_ptr<Engine>> engine_under_test();

inline GptConfig llama_case(GptConfig config, std::uint32_t kv_heads, std::uint32_t head_channels,
                            std::uint32_t feed_forward, Head head = Head::kUntied) {
  config.family = Family::kLlama;
  config.kv_heads = kv_heads;
  config.head_channels = head_channels;
  config.feed_forward = feed_forward;
  config.head = head;
  return config;
}

inline std::vector<DeviceCase> device_cases() {
  return {
      {"even", {2, 2, 32, 64, 64, 64}, {2, 64}},
      {"odd_everything", {2, 5, 35, 80, 131, 8}, {3, 71}},
      {"one_token", {1, 1, 16, 4, 17, 1}, {1, 1}},
      {"several_tiles", {1, 3, 48, 200, 300, 64}, {1, 193}},
      {"llama_even", llama_case({2, 4, 64, 64, 64, 64}, 2, 0, 128), {2, 64}},
      {"llama_odd_everything", llama_case({2, 6, 35, 80, 131, 8}, 3, 14, 67), {3, 71}},
      {"llama_wide_heads", llama_case({1, 2, 48, 200, 300, 64}, 1, 130, 100, Head::kTied), {1, 97}},
  };
}

class OnDevice : public testing::TestWithParam<DeviceCase> {
 protected:
  void SetUp() override {
    auto engine = engine_under_test();
    if (!engine) GTEST_SKIP() << engine.error().message();
    engine_ = *std::move(engine);
  }

  std::vector<std::int32_t> tokens(std::uint64_t seed) const {
    const DeviceCase& c = GetParam();
    Random random(seed);
    std::vector<std::int32_t> values(std::size_t{c.shape.samples} * c.shape.tokens);
    for (auto& value : values) value = static_cast<std::int32_t>(random.below(c.config.vocabulary));
    return values;
  }
  /// Initial values as in training, but large enough that every gradient has size.
  static void fill(WholeModel& model) {
    model.initialise_all(3);
    Random random(3);
    for (auto& each : model.layers())
      for (float& value : each.parameters.span())
        value = 4 * value + static_cast<float>(0.1 * (random.uniform() - 0.5));
    model.copy_tied_values();
  }
  /// Every bit that a pass gives: loss and gradients.
  std::vector<float> results(WholeModel& model) const {
    model.zero_gradients();
    std::vector<float> all = {model.forward(tokens(1), tokens(2))};
    model.backward(tokens(1), tokens(2), 0.7F);
    for (auto& each : model.layers()) {
      const auto gradients = each.gradients.span();
      all.insert(all.end(), gradients.begin(), gradients.end());
    }
    return all;
  }
  /// The largest difference, as a share of the largest value.
  static double difference(std::span<const float> actual, std::span<const float> expected) {
    double largest = 1e-30;
    double worst = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      largest = std::max(largest, std::abs(double{expected[i]}));
      const double off = std::abs(double{actual[i]} - expected[i]);
      worst = off > worst || std::isnan(off) ? off : worst;
    }
    return worst / largest;
  }
  /// With one token the gradients of queries and keys are zero but for rounding.
  bool is_noise(const std::string& name) const {
    if (GetParam().shape.tokens != 1) return false;
    for (const char* part : {"c_attn", "q_proj", "k_proj"})
      if (name.find(part) != std::string::npos) return true;
    return false;
  }

  std::unique_ptr<Engine> engine_;
};

TEST_P(OnDevice, AgreesWithTheReference) {
  const auto plain = make_reference_engine();
  WholeModel model(GetParam().config, GetParam().shape, *engine_);
  WholeModel oracle(GetParam().config, GetParam().shape, *plain);
  fill(model);
  fill(oracle);
  const auto actual = results(model);
  const auto expected = results(oracle);
  ASSERT_TRUE(engine_->status()) << engine_->status().error().message();
  EXPECT_NEAR(actual[0], expected[0], 2e-6 * expected[0]);
  for (std::size_t i = 0; i < model.layers().size(); ++i)
    for (const auto& spec : model.layers()[i].layer->parameters()) {
      if (is_noise(spec.name)) continue;
      EXPECT_LT(difference(model.layers()[i].gradients.span().subspan(spec.offset, spec.count),
                           oracle.layers()[i].gradients.span().subspan(spec.offset, spec.count)),
                1e-5)
          << spec.name;
    }
  std::vector<float> logits(tokens(1).size() * GetParam().config.vocabulary);
  auto expected_logits = logits;
  engine_->logits(GetParam().config, model.head().parameters.span(), model.head_input(), logits);
  plain->logits(GetParam().config, oracle.head().parameters.span(), oracle.head_input(),
                expected_logits);
  EXPECT_LT(difference(logits, expected_logits), 1e-5);
}

TEST_P(OnDevice, GivesTheSameBitsAgainAndInAnotherEngine) {
  WholeModel model(GetParam().config, GetParam().shape, *engine_);
  fill(model);
  const auto first = results(model);
  EXPECT_EQ(results(model), first);
  const auto other = engine_under_test();
  ASSERT_TRUE(other);
  WholeModel elsewhere(GetParam().config, GetParam().shape, **other);
  fill(elsewhere);
  EXPECT_EQ(results(elsewhere), first);
}

// Buffers of the engine's own memory are used in place: the same bits as from anywhere.
TEST_P(OnDevice, TakesBuffersOfItsOwnMemory) {
  WholeModel model(GetParam().config, GetParam().shape, *engine_);
  fill(model);
  auto& block = model.layers()[1];
  const std::size_t count = tokens(1).size() * GetParam().config.channels;
  const auto pass = [&](BufferPool& pool) {
    const auto floats = [&](std::size_t size) {
      return pool.acquire(size * sizeof(float)).value();
    };
    Buffer parameters = floats(block.layer->parameter_count());
    Buffer gradients = floats(block.layer->parameter_count());
    Buffer x = floats(count);
    Buffer y = floats(count);
    Buffer dx = floats(count);
    Buffer stash = pool.acquire(block.layer->stash_bytes()).value();
    const auto values = block.parameters.span();
    std::copy(values.begin(), values.end(), parameters.mutable_as<float>().begin());
    for (std::size_t i = 0; i < count; ++i)
      x.mutable_as<float>()[i] = static_cast<float>(i % 17) * 0.1F - 0.8F;
    engine_->clear(gradients.mutable_as<float>());
    block.layer->forward({.parameters = parameters.as<float>(),
                          .input = x.as<float>(),
                          .output = y.mutable_as<float>(),
                          .stash = stash.mutable_bytes()});
    block.layer->backward({.parameters = parameters.as<float>(),
                           .input = x.as<float>(),
                           .stash = stash.bytes(),
                           .output_gradient = y.as<float>(),
                           .input_gradient = dx.mutable_as<float>(),
                           .gradients = gradients.mutable_as<float>()});
    std::vector<float> all;
    for (const Buffer* each : {&y, &dx, &gradients}) {
      const auto part = each->as<float>();
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  };
  BufferPool anywhere(std::size_t{1} << 28);  // the heap
  BufferPool own(std::size_t{1} << 28, engine_->memory());
  const auto expected = pass(anywhere);
  EXPECT_EQ(pass(own), expected);
  ASSERT_TRUE(engine_->status());
}

// AdamW, norms and sums on the device, as a replica uses them, against the CPU's.
TEST_P(OnDevice, TrainsAsTheCpuDoes) {
  const auto cpu = make_cpu_engine();
  WholeModel model(GetParam().config, GetParam().shape, *engine_);
  WholeModel expected(GetParam().config, GetParam().shape, *cpu);
  model.initialise_all(5);
  expected.initialise_all(5);
  for (std::uint64_t step = 0; step < 3; ++step) {
    const auto train = [&](WholeModel& each, Engine& engine) {
      for (auto& layer : each.layers()) engine.clear(layer.gradients.span());
      const float loss = each.forward(tokens(step), tokens(step + 7));
      each.backward(tokens(step), tokens(step + 7), 1);
      each.update_on(engine, {}, step, 1e-3F, 1.0);
      return loss;
    };
    const float loss = train(model, *engine_);
    EXPECT_NEAR(loss, train(expected, *cpu), 2e-4) << "step " << step;
  }
  ASSERT_TRUE(engine_->status());
}

INSTANTIATE_TEST_SUITE_P(Shapes, OnDevice, testing::ValuesIn(device_cases()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace holmes::model
