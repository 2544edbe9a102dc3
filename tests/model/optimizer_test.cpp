// Goal: the optimizer's arithmetic is right, and does not depend on how a layer is cut into shards.
// Method: double-precision formulas beside it; odd splits compared bit for bit.
#include "holmes/model/optimizer.hpp"

#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "holmes/base/random.hpp"

namespace holmes::model {
namespace {

std::vector<float> random_values(std::size_t count, std::uint64_t seed, double scale = 1) {
  Random random(seed);
  std::vector<float> values(count);
  for (auto& value : values) value = static_cast<float>(scale * (2 * random.uniform() - 1));
  return values;
}

ParameterSpec tensor(std::size_t offset, std::size_t count, bool decay, bool tied_copy) {
  return {.name = "t",
          .shape = {count},
          .offset = offset,
          .count = count,
          .decay = decay,
          .tied_copy = tied_copy};
}

TEST(Chunks, CoverTensorsInOrderAndSpanNoTwo) {
  const std::size_t k = kChunkElements;
  const auto chunks =
      chunks_of({tensor(0, 2 * k + 5, true, true), tensor(2 * k + 5, 7, false, false),
                 tensor(2 * k + 12, k, true, false)});
  ASSERT_EQ(chunks.size(), 5U);
  const std::array<std::size_t, 5> counts = {k, k, 5, 7, k};
  std::size_t offset = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    EXPECT_EQ(chunks[i].offset, offset);
    EXPECT_EQ(chunks[i].count, counts[i]);
    EXPECT_EQ(chunks[i].decay, i != 3);
    EXPECT_EQ(chunks[i].tied_copy, i < 3);
    offset += counts[i];
  }
}

TEST(Add, AddsEachElement) {
  auto sum = random_values(1003, 1);
  const auto before = sum;
  const auto source = random_values(1003, 2);
  add(sum, source);
  for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_EQ(sum[i], before[i] + source[i]);
}

TEST(SumOfSquares, IsAccurateAndTheSameAtAnyAddress) {
  for (const std::size_t count : {0, 1, 31, 32, 33, 1000, 65536}) {
    const auto values = random_values(count + 1, count);
    double expected = 0;
    for (std::size_t i = 0; i < count; ++i) expected += double{values[i]} * values[i];
    const double sum = sum_of_squares(std::span(values).first(count));
    EXPECT_NEAR(sum, expected, 1e-12 * expected);
    std::vector<float> shifted(count + 3);
    for (std::size_t at = 0; at < 3; ++at) {
      std::copy_n(values.begin(), count, shifted.begin() + static_cast<std::ptrdiff_t>(at));
      EXPECT_EQ(sum_of_squares(std::span(shifted).subspan(at, count)), sum);
    }
  }
}

TEST(ClipFactor, LimitsTheNormAndOnlyThat) {
  EXPECT_EQ(clip_factor(0.5, 1.0), 1.0F);
  EXPECT_EQ(clip_factor(5.0, 0.0), 1.0F);
  EXPECT_EQ(clip_factor(0.0, 1.0), 1.0F);
  EXPECT_NEAR(clip_factor(4.0, 1.0), 0.25, 1e-6);
}

struct State {
  std::vector<float> parameters, gradients, exp_avg, exp_avg_sq;
  explicit State(std::size_t count)
      : parameters(random_values(count, 1)),
        gradients(random_values(count, 2, 0.01)),
        exp_avg(random_values(count, 3, 0.01)),
        exp_avg_sq(random_values(count, 4, 1e-4)) {
    for (auto& v : exp_avg_sq) v = std::abs(v);
  }
  void update(std::size_t first, std::size_t count) {
    adamw({}, 6, 1e-3F, 0.7F, true, std::span(parameters).subspan(first, count),
          std::span(gradients).subspan(first, count), std::span(exp_avg).subspan(first, count),
          std::span(exp_avg_sq).subspan(first, count));
  }
};

TEST(AdamW, FollowsTheFormula) {
  const std::size_t count = 517;
  State state(count);
  const State before(count);
  state.update(0, count);
  const AdamW config;
  for (std::size_t i = 0; i < count; ++i) {
    const double g = 0.7 * before.gradients[i];
    const double m = 0.9 * before.exp_avg[i] + 0.1 * g;
    const double v = 0.95 * before.exp_avg_sq[i] + 0.05 * g * g;
    const double m_hat = m / (1 - std::pow(0.9, 7));
    const double v_hat = v / (1 - std::pow(0.95, 7));
    const double p = before.parameters[i] * (1 - 1e-3 * config.weight_decay) -
                     1e-3 * m_hat / (std::sqrt(v_hat) + config.epsilon);
    EXPECT_NEAR(state.exp_avg[i], m, 1e-8);
    EXPECT_NEAR(state.exp_avg_sq[i], v, 1e-10);
    EXPECT_NEAR(state.parameters[i], p, 2e-7);
  }
}

TEST(AdamW, WithoutDecayAnUnusedParameterStays) {
  std::array<float, 3> p = {1, -2, 3};
  std::array<float, 3> g{};
  std::array<float, 3> m{};
  std::array<float, 3> v{};
  adamw({}, 0, 0.1F, 1, false, p, g, m, v);
  EXPECT_EQ(p, (std::array<float, 3>{1, -2, 3}));
  adamw({}, 0, 0.1F, 1, true, p, g, m, v);
  EXPECT_FLOAT_EQ(p[0], 0.99F);
}

TEST(AdamW, DoesNotDependOnTheSplit) {
  const std::size_t count = 1000;
  State whole(count);
  whole.update(0, count);
  for (const std::size_t part : {1, 3, 7, 16, 17, 61, 333}) {
    State split(count);
    for (std::size_t first = 0; first < count; first += part)
      split.update(first, std::min(part, count - first));
    EXPECT_EQ(split.parameters, whole.parameters) << part;
    EXPECT_EQ(split.exp_avg, whole.exp_avg) << part;
    EXPECT_EQ(split.exp_avg_sq, whole.exp_avg_sq) << part;
  }
}

TEST(LearningRate, WarmsUpThenFallsToTheFloor) {
  const LearningRate schedule = {.peak = 1, .floor = 0.1F, .warmup_steps = 10, .decay_steps = 110};
  EXPECT_FLOAT_EQ(learning_rate(schedule, 0), 0.1F);
  EXPECT_FLOAT_EQ(learning_rate(schedule, 9), 1.0F);
  EXPECT_FLOAT_EQ(learning_rate(schedule, 10), 1.0F);
  EXPECT_FLOAT_EQ(learning_rate(schedule, 60), 0.55F);
  EXPECT_FLOAT_EQ(learning_rate(schedule, 110), 0.1F);
  EXPECT_FLOAT_EQ(learning_rate(schedule, 100000), 0.1F);
  for (std::uint64_t step = 10; step < 110; ++step)
    EXPECT_GE(learning_rate(schedule, step), learning_rate(schedule, step + 1));
}

}  // namespace
}  // namespace holmes::model
