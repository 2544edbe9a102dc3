// Goal: errors travel as values and keep what they say. Method: functions that fail at each place.
#include "holmes/base/result.hpp"

#include <cerrno>
#include <memory>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace holmes {
namespace {

Result<int> half(int x) {
  if (x % 2 != 0) return Error(ErrorCode::kInvalidArgument, std::to_string(x) + " is odd");
  return x / 2;
}

Result<int> quarter(int x) {
  HOLMES_TRY_ASSIGN(const int once, half(x));
  HOLMES_TRY_ASSIGN(const int twice, half(once));
  return twice;
}

Status even(int x) {
  HOLMES_TRY(half(x));
  return {};
}

TEST(Result, CarriesValueOrError) {
  EXPECT_EQ(*quarter(8), 2);
  const auto failed = quarter(6);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(failed.error().message(), "3 is odd");
  EXPECT_EQ(failed.value_or(7), 7);
  EXPECT_TRUE(even(2));
  EXPECT_FALSE(even(1));
}

TEST(Result, HoldsMoveOnlyValues) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(5));
  EXPECT_EQ(*std::move(result).value(), 5);
}

TEST(Result, CaptureTurnsExceptionsIntoErrors) {
  const auto failed = capture([]() -> int { throw std::runtime_error("boom"); });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error(), Error(ErrorCode::kInternal, "boom"));
  EXPECT_EQ(*capture([] { return 3; }), 3);
}

TEST(Result, ErrorsNameTheirPlace) {
  EXPECT_EQ(half(1).error().in("job.toml:3").message(), "job.toml:3: 1 is odd");
  EXPECT_EQ(system_error("write x", ENOSPC).code(), ErrorCode::kOutOfResources);
  EXPECT_EQ(system_error("open x", ENOENT).message(), "open x: No such file or directory");
}

TEST(ResultDeathTest, ReadingTheWrongSideStops) {
  EXPECT_DEATH(half(1).value(), "1 is odd");
  EXPECT_DEATH(std::ignore = half(2).error(), "successful Result");
}

}  // namespace
}  // namespace holmes
