// Goal: half-precision numbers are read and written as IEEE 754 and bfloat16 say. Method: every
// 16-bit pattern there is goes to fp32 and back; rounding is checked where two neighbours are
// equally near, just beside that, and at both ends of the range.
#include "hugging_face/convert.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace holmes::model {
namespace {

constexpr std::uint32_t kPatterns = 1U << 16;

TEST(Convert, EveryHalfComesBack) {
  for (std::uint32_t pattern = 0; pattern < kPatterns; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const float half = from_f16(bits);
    const float brain = from_bf16(bits);
    EXPECT_TRUE(std::isnan(half) || to_f16(half) == bits) << bits;
    EXPECT_TRUE(std::isnan(brain) || to_bf16(brain) == bits) << bits;
  }
}

TEST(Convert, KnownHalves) {
  EXPECT_EQ(from_f16(0x3c00), 1.0F);
  EXPECT_EQ(from_f16(0xc000), -2.0F);
  EXPECT_EQ(from_f16(0x7bff), 65504.0F);
  EXPECT_EQ(from_f16(0x0001), 0x1p-24F);
  EXPECT_EQ(from_f16(0x3555), 0.333251953125F);
  EXPECT_EQ(from_bf16(0x3f80), 1.0F);
  EXPECT_EQ(from_bf16(0x4049), 3.140625F);
  EXPECT_TRUE(std::isnan(from_f16(0x7e00)));
}

TEST(Convert, RoundsToNearestAndTiesToEven) {
  for (std::uint32_t pattern = 0; pattern + 1 < 0x7c00; ++pattern) {
    const auto low = static_cast<std::uint16_t>(pattern);
    const auto high = static_cast<std::uint16_t>(pattern + 1);
    const float middle = (from_f16(low) + from_f16(high)) / 2;
    EXPECT_EQ(to_f16(middle), pattern % 2 == 0 ? low : high);
    EXPECT_EQ(to_f16(std::nextafter(middle, 0.0F)), low);
    EXPECT_EQ(to_f16(std::nextafter(middle, 1e9F)), high);
    EXPECT_EQ(to_f16(-middle), 0x8000 | (pattern % 2 == 0 ? low : high));
  }
  EXPECT_EQ(to_bf16(1.0F + 0x1p-8F), 0x3f80);
  EXPECT_EQ(to_bf16(1.0F + 0x3p-8F), 0x3f82);
  EXPECT_EQ(to_bf16(std::nextafter(1.0F + 0x1p-8F, 2.0F)), 0x3f81);
}

TEST(Convert, WhatIsTooLargeBecomesInfiniteAndIsTold) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(to_f16(std::nextafter(65520.0F, 0.0F)), 0x7bff);
  EXPECT_EQ(to_f16(65520.0F), 0x7c00);
  EXPECT_EQ(to_f16(-infinity), 0xfc00);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(from_f16(to_f16(std::nanf("")))));
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(std::nanf("")))));
  std::vector<std::byte> bytes;
  EXPECT_FALSE(narrow(Dtype::kF16, std::vector<float>{1, 70000}, bytes));
  EXPECT_TRUE(narrow(Dtype::kF16, std::vector<float>{1, infinity}, bytes));
  EXPECT_TRUE(narrow(Dtype::kBF16, std::vector<float>{1, 70000}, bytes));
}

TEST(Convert, PartsOfATensor) {
  const std::vector<float> values{1, -2, 0.5F, 4};
  for (const Dtype dtype : {Dtype::kF32, Dtype::kF16, Dtype::kBF16}) {
    std::vector<std::byte> bytes;
    ASSERT_TRUE(narrow(dtype, values, bytes));
    std::vector<float> part(2);
    widen(dtype, bytes, 1, part);
    EXPECT_EQ(part, (std::vector<float>{-2, 0.5F}));
  }
}

}  // namespace
}  // namespace holmes::model
