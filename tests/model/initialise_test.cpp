// Goal: initial values depend on seed, tensor name and element only, and are as specified.
#include <cmath>

#include <gtest/gtest.h>

#include "holmes/model/gpt.hpp"

namespace holmes::model {
namespace {

ParameterSpec matrix(const char* name, std::size_t offset, std::size_t count) {
  return {.name = name, .shape = {count}, .offset = offset, .count = count, .init_stddev = 0.02F};
}

TEST(Initialise, GivesTheDeviationAsked) {
  std::vector<float> values(100000);
  initialise({matrix("h.0.attn.c_attn.weight", 0, values.size())}, 1, values);
  double sum = 0;
  double squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  const double n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0, 3e-4);
  EXPECT_NEAR(std::sqrt(squares / n), 0.02, 2e-4);
}

TEST(Initialise, DoesNotDependOnWhereATensorLies) {
  std::vector<float> alone(100);
  initialise({matrix("b", 0, 100)}, 7, alone);
  std::vector<float> together(300);
  initialise({matrix("a", 0, 200), matrix("b", 200, 100)}, 7, together);
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + 200));
  EXPECT_FALSE(std::equal(alone.begin(), alone.end(), together.begin()));
  std::vector<float> other_seed(100);
  initialise({matrix("b", 0, 100)}, 8, other_seed);
  EXPECT_NE(alone, other_seed);
}

TEST(Initialise, ConstantsAreConstant) {
  std::vector<float> values(8, -1);
  initialise({{.name = "w", .shape = {4}, .offset = 0, .count = 4, .init_value = 1},
              {.name = "b", .shape = {4}, .offset = 4, .count = 4}},
             1, values);
  EXPECT_EQ(values, (std::vector<float>{1, 1, 1, 1, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace holmes::model
