// Goal: a line keeps its level, component and text; a Logger without a sink is silent.
#include "holmes/base/log.hpp"

#include <gtest/gtest.h>

namespace holmes {
namespace {

TEST(Logger, WritesToItsSinkUnderItsName) {
  MemoryLogSink sink;
  const Logger logger(sink, "coordinator");
  logger.info("one");
  logger.named("nic").error("two");
  const auto lines = sink.lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].component, "coordinator");
  EXPECT_EQ(lines[1].component, "nic");
  EXPECT_EQ(lines[1].message, "two");
  EXPECT_EQ(to_string(lines[1].level), "error");
  Logger().error("dropped");
}

}  // namespace
}  // namespace holmes
