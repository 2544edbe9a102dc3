// Goal: every instruction set's kernels give the same bits, so that choosing one at run time
// changes speed only. Method: run each table that this processor has on the same random numbers.
#include "kernels/kernels.hpp"

#include <cmath>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include "holmes/base/random.hpp"

namespace holmes::model::kernels {
namespace {

std::vector<float> random_values(std::size_t count, std::uint64_t seed, double scale = 1) {
  Random random(seed);
  std::vector<float> values(count);
  for (auto& value : values) value = static_cast<float>(scale * (2 * random.uniform() - 1));
  return values;
}

TEST(Kernels, TheBestTableIsRunnable) {
  ASSERT_FALSE(runnable().empty());
  EXPECT_EQ(&best(), runnable().back());
}

class EachTable : public testing::TestWithParam<const Table*> {};

TEST_P(EachTable, OptimizerKernelsAgreeWithTheBaseline) {
  const Table& table = *GetParam();
  const Table& baseline = *runnable().front();
  const std::size_t count = 1237;
  const auto gradients = random_values(count, 1);
  EXPECT_EQ(table.sum_of_squares(count, gradients.data()),
            baseline.sum_of_squares(count, gradients.data()));

  const AdamWFactors factors = {.gradient_scale = 0.3F,
                                .beta1 = 0.9F,
                                .one_minus_beta1 = 0.1F,
                                .beta2 = 0.95F,
                                .one_minus_beta2 = 0.05F,
                                .decay = 0.999F,
                                .step_size = 1e-3F,
                                .inverse_sqrt_c2 = 1.7F,
                                .epsilon = 1e-8F};
  std::vector<std::vector<float>> results;
  for (const Table* each : {&table, &baseline}) {
    auto p = random_values(count, 2);
    std::vector<float> m(count), v(count);
    each->adamw(factors, count, p.data(), gradients.data(), m.data(), v.data());
    each->add(count, m.data(), p.data());
    results.push_back(p);
    results.push_back(m);
    results.push_back(v);
  }
  EXPECT_EQ(results[0], results[3]);
  EXPECT_EQ(results[1], results[4]);
  EXPECT_EQ(results[2], results[5]);
}

constexpr std::size_t kRows = 5;
constexpr std::size_t kColumns = 83;
constexpr std::size_t kCount = kRows * kColumns;

/// Runs `work(table)`, which returns vectors, on this table and on the baseline.
template <class Work>
void expect_same_bits(const Table& table, const Work& work) {
  EXPECT_EQ(work(table), work(*runnable().front()));
}

TEST_P(EachTable, NormKernelsAgreeWithTheBaseline) {
  const auto x = random_values(kCount, 1, 3);
  const auto dy = random_values(kCount, 2);
  const auto weight = random_values(kColumns, 3);
  const auto bias = random_values(kColumns, 4);
  expect_same_bits(*GetParam(), [&](const Table& t) {
    std::vector<float> mean(kRows), inverse(kRows), y(kCount), again(kCount), dx(kCount);
    std::vector<float> dweight(kColumns, 1), dbias(kColumns, 1);
    t.layer_norm(kRows, kColumns, x.data(), weight.data(), bias.data(),
                 {mean.data(), inverse.data()}, 1e-5F, y.data());
    t.layer_norm_again(kRows, kColumns, x.data(), weight.data(), bias.data(),
                       {mean.data(), inverse.data()}, again.data());
    EXPECT_EQ(y, again);
    t.layer_norm_backward({kRows,
                           kColumns,
                           x.data(),
                           weight.data(),
                           {mean.data(), inverse.data()},
                           dy.data(),
                           x.data(),
                           dx.data(),
                           dweight.data(),
                           dbias.data()});
    return std::vector{mean, inverse, y, dx, dweight, dbias};
  });
}

TEST_P(EachTable, RmsNormKernelsAgreeWithTheBaseline) {
  const auto x = random_values(kCount, 1, 3);
  const auto dy = random_values(kCount, 2);
  const auto weight = random_values(kColumns, 3);
  expect_same_bits(*GetParam(), [&](const Table& t) {
    std::vector<float> inverse(kRows), y(kCount), again(kCount), dx(kCount), alone(kCount);
    std::vector<float> dweight(kColumns, 1);
    t.rms_norm(kRows, kColumns, x.data(), weight.data(), inverse.data(), 1e-5F, y.data());
    t.rms_norm_again(kRows, kColumns, x.data(), weight.data(), inverse.data(), again.data());
    EXPECT_EQ(y, again);
    NormBackward arguments{.rows = kRows,
                           .columns = kColumns,
                           .x = x.data(),
                           .weight = weight.data(),
                           .statistics = {nullptr, inverse.data()},
                           .dy = dy.data(),
                           .residual = x.data(),
                           .dx = dx.data(),
                           .dweight = dweight.data(),
                           .dbias = nullptr};
    t.rms_norm_backward(arguments);
    arguments.residual = nullptr;
    arguments.dx = alone.data();
    t.rms_norm_backward(arguments);
    return std::vector{inverse, y, dx, alone, dweight};
  });
}

TEST_P(EachTable, RotationsAgreeWithTheBaselineAndGoBack) {
  constexpr std::size_t kHalf = 19;
  constexpr std::size_t kStride = 3 * 2 * kHalf + 5;
  const auto x = random_values(kRows * kStride, 1);
  std::vector<float> cosines, sines;
  for (const float angle : random_values(2 * kHalf, 2, 3)) {
    cosines.push_back(std::cos(angle));
    sines.push_back(std::sin(angle));
  }
  expect_same_bits(*GetParam(), [&](const Table& t) {
    Rotation rotation{kRows, 3, kHalf, kStride, 2, cosines.data(), sines.data(), false};
    auto turned = x;
    t.rotate(rotation, turned.data());
    EXPECT_NE(turned, x);
    auto back = turned;
    rotation.back = true;
    t.rotate(rotation, back.data());
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(back[i], x[i], 1e-6F);
    // What follows the heads in a row is left alone.
    for (std::size_t i = kStride - 5; i < kStride; ++i) EXPECT_EQ(turned[i], x[i]);
    return std::vector{turned, back};
  });
}

TEST_P(EachTable, SwigluKernelsAgreeWithTheBaselineAndTheDefinition) {
  const auto x = random_values(2 * kCount, 1, 12);
  const auto dy = random_values(kCount, 2);
  expect_same_bits(*GetParam(), [&](const Table& t) {
    std::vector<float> y(kCount), again(kCount), dx(2 * kCount);
    t.swiglu(kRows, kColumns, x.data(), y.data());
    t.swiglu_backward(kRows, kColumns, x.data(), dy.data(), again.data(), dx.data());
    EXPECT_EQ(y, again);
    for (std::size_t row = 0; row < kRows; ++row)
      for (std::size_t c = 0; c < kColumns; ++c) {
        const std::size_t at = row * 2 * kColumns + c;
        const double gate = x[at];
        const double rest = x[at + kColumns];
        const double s = 1 / (1 + std::exp(-gate));
        const double gradient = dy[row * kColumns + c];
        EXPECT_NEAR(y[row * kColumns + c], gate * s * rest, 3e-5);
        EXPECT_NEAR(dx[at], gradient * rest * (s + gate * s * (1 - s)), 3e-5);
        EXPECT_NEAR(dx[at + kColumns], gradient * gate * s, 3e-6);
      }
    return std::vector{y, dx};
  });
}

TEST_P(EachTable, BiasAndGeluKernelsAgreeWithTheBaseline) {
  const auto x = random_values(kCount, 1, 6);
  const auto bias = random_values(kColumns, 3);
  expect_same_bits(*GetParam(), [&](const Table& t) {
    auto sum = x;
    t.add_bias(kRows, kColumns, bias.data(), sum.data());
    t.add_bias_and_residual(kRows, kColumns, bias.data(), x.data(), sum.data());
    auto dbias = bias;
    t.add_column_sums(kRows, kColumns, x.data(), dbias.data());
    auto pre = x;
    std::vector<float> y(kCount), again(kCount);
    t.bias_gelu(kRows, kColumns, bias.data(), pre.data(), y.data());
    auto gradient = random_values(kCount, 5);
    t.gelu_backward(kRows, kColumns, pre.data(), gradient.data(), again.data(), dbias.data());
    EXPECT_EQ(y, again);
    return std::vector{sum, dbias, pre, y, gradient};
  });
}

TEST_P(EachTable, SoftmaxKernelsAgreeWithTheBaseline) {
  const auto x = random_values(kCount, 1, 20);
  const auto delta = random_values(kRows, 2);
  const std::vector<std::int32_t> targets = {0, 82, 7, 40, 1};
  expect_same_bits(*GetParam(), [&](const Table& t) {
    auto scores = x;
    auto raw = x;
    auto gradient = random_values(kCount, 3);
    std::vector<float> largest(kRows), inverse(kRows), dots(kRows);
    t.causal_softmax({kRows, kColumns, kColumns, 60, 0.3F, scores.data()}, largest.data(),
                     inverse.data());
    t.causal_softmax_backward({kRows, kColumns, kColumns, 60, 0.3F, raw.data()}, largest.data(),
                              inverse.data(), delta.data(), gradient.data());
    t.scale_rows(kRows, kColumns, kColumns, inverse.data(), scores.data());
    EXPECT_EQ(scores, raw);
    t.row_dots(kRows, kColumns, kColumns, x.data(), gradient.data(), dots.data());
    auto logits = x;
    const double loss =
        t.cross_entropy({kRows, kColumns, kColumns, targets.data(), 0.2F, logits.data()});
    return std::vector{
        scores, gradient, largest, inverse, dots, logits, std::vector{static_cast<float>(loss)}};
  });
}

TEST_P(EachTable, GeluIsAccurateNearAndFarFromZero) {
  std::vector<float> x;
  for (int i = -1200; i <= 1200; ++i) x.push_back(static_cast<float>(i) / 100);
  x.insert(x.end(), {1e-6F, -1e-6F, 1e-20F, 50, -50, 1000, -1000});
  const std::vector<float> no_bias(x.size());
  std::vector<float> y(x.size()), slope(x.size(), 1), again(x.size()), dbias(x.size());
  GetParam()->bias_gelu(1, x.size(), no_bias.data(), x.data(), y.data());
  GetParam()->gelu_backward(1, x.size(), x.data(), slope.data(), again.data(), dbias.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = x[i];
    const double z = 2 * std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v);
    const double s = 1 / (1 + std::exp(-z));
    // The exponent's rounding counts z times in its power. exp is held at e^88, so that far below
    // zero GELU is a tiny number and not exactly zero.
    EXPECT_NEAR(y[i], v * s, 1e-6 * std::abs(v * s) + 2e-7 * std::abs(z * v * s) + 1e-34)
        << "gelu(" << v << ")";
    const double inner = 2 * std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * v * v);
    EXPECT_NEAR(slope[i], s + v * s * (1 - s) * inner, 2e-6) << "gelu'(" << v << ")";
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, EachTable,
                         testing::ValuesIn(runnable().begin(), runnable().end()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace holmes::model::kernels
