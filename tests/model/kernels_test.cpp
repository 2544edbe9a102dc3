// Goal: every instruction set's kernels give the same bits, so that choosing one at run time
// changes speed only. Method: run each table that this processor has on the same random numbers.
#include "kernels/kernels.hpp"

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

INSTANTIATE_TEST_SUITE_P(Kernels, EachTable,
                         testing::ValuesIn(runnable().begin(), runnable().end()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace holmes::model::kernels
