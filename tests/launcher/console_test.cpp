// Goal: results and logs go to their descriptors; a live block is erased before anything is written
// above it and drawn again after. Method: descriptors are files; the sink's lines are read back.
#include "console.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "capture_console.hpp"
#include "log_sink.hpp"

namespace holmes::launcher {
namespace {

TEST(Console, KeepsResultsAndLogsApart) {
  CaptureConsole capture;
  capture.console().print("result");
  capture.console().log("log");
  EXPECT_EQ(capture.out(), "result\n");
  EXPECT_EQ(capture.error(), "log\n");
  EXPECT_EQ(capture.console().columns(), 0);
}

TEST(Console, RedrawsTheBlockBelowWhatIsPrinted) {
  CaptureConsole capture;
  capture.console().show({"a", "b"});
  capture.console().print("x");
  EXPECT_EQ(capture.out(), "a\nb\n\x1b[2A\x1b[Jx\na\nb\n");
  capture.console().show({"c"});
  capture.console().leave();
  capture.console().print("y");
  EXPECT_THAT(capture.out(), testing::EndsWith("a\nb\n\x1b[2A\x1b[Jc\ny\n"));
}

TEST(LogSink, TextNamesLevelAndComponent) {
  CaptureConsole capture;
  const auto sink = make_log_sink(capture.console(), {false, LogLevel::kWarning});
  sink->write(LogLevel::kInfo, "nic", "dropped");
  sink->write(LogLevel::kWarning, "nic a0/eth0", "slow {}");
  EXPECT_THAT(capture.error(), testing::HasSubstr("warning nic a0/eth0: slow {}\n"));
  EXPECT_THAT(capture.error(), testing::Not(testing::HasSubstr("dropped")));
}

TEST(LogSink, JsonIsOneObjectALineWhateverTheMessage) {
  CaptureConsole capture;
  const auto sink = make_log_sink(capture.console(), {true, LogLevel::kDebug});
  sink->write(LogLevel::kError, "nic", "a \"quote\"\n and bytes \xff %v {}");
  const auto json = nlohmann::json::parse(capture.error());
  EXPECT_EQ(json["level"], "error");
  EXPECT_EQ(json["component"], "nic");
  EXPECT_THAT(json["message"].get<std::string>(), testing::HasSubstr("\"quote\"\n and"));
  EXPECT_THAT(capture.error(), testing::EndsWith("}\n"));
}

TEST(LogSink, LevelsHaveNames) {
  EXPECT_EQ(parse_log_level("debug"), LogLevel::kDebug);
  EXPECT_EQ(parse_log_level("error"), LogLevel::kError);
  EXPECT_EQ(parse_log_level("loud"), std::nullopt);
}

}  // namespace
}  // namespace holmes::launcher
