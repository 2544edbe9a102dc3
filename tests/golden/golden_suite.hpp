#pragma once

// The same models as PyTorch: a tiny GPT-2 and tiny Llamas whose numbers were made in double
// precision by make_golden.py and make_llama_golden.py; every logit, loss and gradient, and the
// weights after three clipped AdamW steps of two micro-batches each. The padding rows of the tables
// are filled with numbers that would be seen at once if anything read them. The test that includes
// this says for which engines.

#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>

#include <optional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "whole_model.hpp"

namespace holmes::model {

constexpr GptConfig kGpt2 = {.layers = 2,
                             .heads = 2,
                             .channels = 16,
                             .sequence = 8,
                             .vocabulary = 27,
                             .vocabulary_padding = 16};

inline GptConfig llama() {
  GptConfig config = kGpt2;
  config.family = Family::kLlama;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_channels = 6;
  config.feed_forward = 24;
  return config;
}

inline GptConfig tied_llama() {
  GptConfig config = kGpt2;
  config.family = Family::kLlama;
  config.head = Head::kTied;
  config.feed_forward = 24;
  config.rope = {.theta = 100, .factor = 8, .original_sequence = 32};
  return config;
}

constexpr MicroBatchShape kShape = {.samples = 2, .tokens = 8};
constexpr std::size_t kSteps = 3;
constexpr std::size_t kMicroBatches = 2;
constexpr AdamW kAdamW = {.beta1 = 0.9F, .beta2 = 0.95F, .epsilon = 1e-5F, .weight_decay = 0.1F};
constexpr float kLearningRate = 1e-2F;
constexpr double kMaxNorm = 0.5;
constexpr float kPaddingValue = 100;

/// The stored numbers, by name.
class GoldenFile {
 public:
  explicit GoldenFile(const char* name) {
    std::ifstream file(std::string(HOLMES_GOLDEN_FOLDER "/") + name, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    std::uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, bytes_.data(), sizeof header_bytes);
    const auto data = bytes_.begin() + sizeof header_bytes;
    data_ = sizeof header_bytes + header_bytes;
    header_ = nlohmann::json::parse(data, data + static_cast<std::ptrdiff_t>(header_bytes));
  }
  template <class T>
  std::vector<T> get(const std::string& name) const {
    const auto& entry = header_.at(name);
    const std::size_t begin = entry.at("data_offsets")[0];
    const std::size_t end = entry.at("data_offsets")[1];
    std::vector<T> values((end - begin) / sizeof(T));
    std::memcpy(values.data(), bytes_.data() + data_ + begin, end - begin);
    return values;
  }

 private:
  std::vector<char> bytes_;
  std::size_t data_ = 0;
  nlohmann::json header_;
};

struct Case {
  const char* name;
  Result<std::unique_ptr<Engine>> (*make)();  ///< An error: the test is skipped.
  GptConfig config;
  const char* file;
};

inline std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.name;
}

class Golden : public testing::TestWithParam<Case> {
 protected:
  Golden() : config_(GetParam().config), golden_(GetParam().file) {}

  void SetUp() override {
    prepare_compute_thread();
    auto engine = GetParam().make();
    if (!engine) GTEST_SKIP() << engine.error().message();
    engine_ = *std::move(engine);
    model_.emplace(config_, kShape, *engine_);
    for (auto& each : model_->layers()) {
      each.parameters.fill(kPaddingValue);
      for (const auto& spec : each.layer->parameters()) {
        const auto values = golden_.get<float>("initial/" + spec.name);
        std::copy(values.begin(), values.end(), each.parameters.span().data() + spec.offset);
      }
    }
  }

  std::span<const std::int32_t> micro_batch(const std::vector<std::int32_t>& all, std::size_t step,
                                            std::size_t index) const {
    const std::size_t rows = std::size_t{kShape.samples} * kShape.tokens;
    return std::span(all).subspan((step * kMicroBatches + index) * rows, rows);
  }

  /// Loss of each micro-batch; gradients are left in the model.
  std::vector<float> accumulate(std::size_t step) {
    model_->zero_gradients();
    std::vector<float> losses;
    for (std::size_t i = 0; i < kMicroBatches; ++i) {
      const auto tokens = micro_batch(tokens_, step, i);
      const auto targets = micro_batch(targets_, step, i);
      losses.push_back(model_->forward(tokens, targets));
      model_->backward(tokens, targets, 1.0F / kMicroBatches);
    }
    return losses;
  }

  /// Each tensor of `arrays` against the stored "prefix/name", except the embedding's tied copy.
  void expect_tensors(const std::string& prefix, Floats OwnedLayer::*arrays, float tolerance) {
    for (auto& each : model_->layers())
      for (const auto& spec : each.layer->parameters()) {
        if (spec.tied_copy) continue;
        const auto expected = golden_.get<float>(prefix + spec.name);
        ASSERT_LE(expected.size(), spec.count);
        const float* actual = (each.*arrays).span().data() + spec.offset;
        for (std::size_t i = 0; i < expected.size(); ++i)
          EXPECT_NEAR(actual[i], expected[i], tolerance) << prefix << spec.name << " element " << i;
      }
  }

  const GptConfig config_;
  const GoldenFile golden_;
  const std::vector<std::int32_t> tokens_ = golden_.get<std::int32_t>("tokens");
  const std::vector<std::int32_t> targets_ = golden_.get<std::int32_t>("targets");
  std::unique_ptr<Engine> engine_;
  std::optional<WholeModel> model_;
};

TEST_P(Golden, LogitsOfEveryPosition) {
  model_->forward(micro_batch(tokens_, 0, 0), micro_batch(targets_, 0, 0));
  const auto expected = golden_.get<float>("logits");
  std::vector<float> logits(expected.size());
  engine_->logits(config_, model_->head().parameters.span(), model_->head_input(), logits);
  for (std::size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(logits[i], expected[i], 4e-6F) << i;
}

TEST_P(Golden, LogitsOfTheLastPositionAlone) {
  model_->forward(micro_batch(tokens_, 0, 0), micro_batch(targets_, 0, 0));
  const auto expected = golden_.get<float>("logits");
  std::vector<float> logits(config_.vocabulary);
  engine_->logits(config_, model_->head().parameters.span(),
                  model_->head_input().last(config_.channels), logits);
  const auto last = std::span(expected).last(config_.vocabulary);
  for (std::size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(logits[i], last[i], 4e-6F) << i;
}

TEST_P(Golden, EveryGradient) {
  accumulate(0);
  model_->merge_tied_gradients();
  expect_tensors("gradient/", &OwnedLayer::gradients, 1e-6F);
  EXPECT_NEAR(model_->gradient_norm(), golden_.get<float>("norms")[0], 2e-6);
}

TEST_P(Golden, PaddingRowsGetNoGradient) {
  accumulate(0);
  const std::size_t used = std::size_t{config_.vocabulary} * config_.channels;
  const auto& table = model_->head().layer->parameters().back();
  ASSERT_LT(used, table.count);
  for (std::size_t i = used; i < table.count; ++i)
    EXPECT_EQ(model_->head().gradients.span()[table.offset + i], 0.0F);
}

TEST_P(Golden, ThreeStepsOfTraining) {
  const auto losses = golden_.get<float>("losses");
  const auto norms = golden_.get<float>("norms");
  for (std::size_t step = 0; step < kSteps; ++step) {
    const auto actual = accumulate(step);
    for (std::size_t i = 0; i < kMicroBatches; ++i)
      EXPECT_NEAR(actual[i], losses[step * kMicroBatches + i], 4e-6F);
    EXPECT_NEAR(model_->update(kAdamW, step, kLearningRate, kMaxNorm), norms[step], 4e-6);
  }
  expect_tensors("final/", &OwnedLayer::parameters, 5e-6F);
}

}  // namespace holmes::model
