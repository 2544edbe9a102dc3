// Goal: the figures of the display follow from the events; no line is wider than the terminal;
// without colours and Unicode there is plain ASCII; plain lines come first, last, and now and then.
#include "progress.hpp"

#include <gmock/gmock.h>

#include "capture_console.hpp"
#include "display.hpp"
#include "sample_events.hpp"

namespace holmes::launcher {
namespace {

using testing::HasSubstr;
using testing::Not;

Progress after_steps(std::uint64_t count, std::uint64_t total = 100) {
  ProgressTracker tracker(total, two_hosts());
  for (std::uint64_t step = 0; step < count; ++step)
    tracker.on_event(step_finished(step, 5.0 - 0.01 * static_cast<double>(step)));
  return tracker.progress();
}

TEST(Progress, RatesFollowFromCountersAndDurations) {
  const auto progress = after_steps(50);
  EXPECT_EQ(progress.steps_done, 50U);
  EXPECT_NEAR(progress.tokens_per_s, 2000, 1e-6);
  EXPECT_NEAR(progress.left_s(), 25, 1e-6);
  ASSERT_EQ(progress.nics.size(), 1U);
  EXPECT_EQ(progress.nics[0].name, "a0/eth0");
  EXPECT_NEAR(progress.nics[0].sent_per_s, 2e6, 100);
  EXPECT_NEAR(progress.nics[0].received_per_s, 1e6, 100);
}

TEST(Progress, TokensAndTimeOfAStepAreOneMeasure) {
  ProgressTracker tracker(100, two_hosts());
  const double durations[] = {3.0, 0.1, 0.4, 0.05, 0.2, 0.1};
  for (std::uint64_t step = 0; step < std::size(durations); ++step) {
    tracker.on_event(step_finished(step, 1, durations[step]));
    EXPECT_NEAR(tracker.progress().tokens_per_s * tracker.progress().step_s, 1000, 1e-6) << step;
  }
}

TEST(Progress, TheFirstStepCountsOnlyWhileItIsAlone) {
  ProgressTracker tracker(12, two_hosts());
  tracker.on_event(step_finished(0, 1, 3.0));
  EXPECT_NEAR(tracker.progress().step_s, 3, 1e-9);
  tracker.on_event(step_finished(1, 1, 0.2));
  EXPECT_NEAR(tracker.progress().step_s, 0.2, 1e-9);
  EXPECT_NEAR(tracker.progress().left_s(), 2, 1e-9);
}

TEST(Progress, NoRateIsShownBeforeOneIsKnown) {
  EXPECT_THAT(render_line(after_steps(1)), Not(HasSubstr("NIC")));
  EXPECT_THAT(render_line(after_steps(50)), HasSubstr("all NICs send 2.0 MB/s"));
}

TEST(Progress, CountersThatStartAnewDoNotGoNegative) {
  ProgressTracker tracker(10, two_hosts());
  tracker.on_event(step_finished(5, 1));
  tracker.on_event(step_finished(0, 1));
  EXPECT_EQ(tracker.progress().nics[0].sent_per_s, 0);
}

TEST(Progress, AResumedRunStartsWhereItIs) {
  ProgressTracker tracker(10, two_hosts());
  tracker.on_event(plan_from(7));
  EXPECT_EQ(tracker.progress().steps_done, 7U);
}

TEST(LossCurve, StaysBoundedAndKeepsItsShape) {
  LossCurve curve;
  for (int i = 0; i < 100'000; ++i) curve.add(100'000 - i);
  EXPECT_LT(curve.points().size(), LossCurve::kPointsMax);
  EXPECT_GE(curve.points().size(), LossCurve::kPointsMax / 2);
  EXPECT_GT(curve.points().front(), curve.points().back());
}

TEST(Sparkline, SpansLowestToHighest) {
  EXPECT_EQ(sparkline({1, 2, 3}, 10, true), "▁▅█");
  EXPECT_EQ(sparkline({1, 2, 3}, 2, true), "▁█");
  EXPECT_EQ(sparkline({1, 1}, 10, true), "▁▁");
  EXPECT_EQ(sparkline({}, 10, true), "");
  EXPECT_EQ(sparkline({1, 3}, 10, false), "_'");
}

TEST(Human, DurationsAndBytes) {
  EXPECT_EQ(human_duration(3.44), "3.4 s");
  EXPECT_EQ(human_duration(125), "2:05");
  EXPECT_EQ(human_duration(3723), "1:02:03");
  EXPECT_EQ(human_duration(-1), "?");
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(12'345), "12.3 kB");
  EXPECT_EQ(human_bytes(999'700), "1.0 MB");
  EXPECT_EQ(human_bytes(123e9), "123 GB");
}

std::size_t columns(const std::string& line) {
  std::size_t count = 0;
  for (const char c : line) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

TEST(LiveDisplay, NoLineReachesTheLastColumn) {
  const auto progress = after_steps(60);
  for (const int width : {10, 20, 40, 79, 80, 200})
    for (const auto& line : render_live(progress, {width, false, true}))
      EXPECT_LT(columns(line), static_cast<std::size_t>(width)) << line;
}

TEST(LiveDisplay, ShowsWhatPeopleWatch) {
  std::string block;
  for (const auto& line : render_live(after_steps(50), {100, false, true})) block += line + "\n";
  for (const char* part : {"50/100", "50 %", "left 0:25", "loss 4.51", "2000 tokens/s", "a0/eth0",
                           "2.0 MB/s", "1.0 MB/s", "█", "▁"})
    EXPECT_THAT(block, HasSubstr(part));
}

TEST(LiveDisplay, ColoursAndUnicodeAreOptional) {
  for (const auto& line : render_live(after_steps(50), {100, false, false}))
    for (const char c : line) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << line;
  EXPECT_THAT(render_live(after_steps(50), {100, true, true})[0], HasSubstr("\x1b["));
}

class ManualClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(Duration duration) { now_ += duration; }

 private:
  TimePoint now_{};
};

class DisplayTest : public testing::Test {
 protected:
  Display display(DisplayMode mode) {
    DisplayOptions options;
    options.mode = mode;
    options.steps_total = 100;
    options.cluster = two_hosts();
    return {capture_.console(), clock_, options};
  }

  CaptureConsole capture_;
  ManualClock clock_;
};

TEST_F(DisplayTest, PlainLinesComeFirstLastAndEvery10Seconds) {
  auto plain = display(DisplayMode::kPlain);
  for (std::uint64_t step = 0; step < 100; ++step) {
    plain.on_event(step_finished(step, 1));
    clock_.advance(std::chrono::milliseconds(250));
  }
  const std::string out = capture_.out();
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 4);  // at 0, 10 and 20 s, and the last
  for (const char* part : {"step 1/100", "step 41/100", "step 81/100", "step 100/100"})
    EXPECT_THAT(out, HasSubstr(part));
  EXPECT_THAT(out, Not(HasSubstr("\x1b")));
}

TEST_F(DisplayTest, LiveBlockIsRedrawnInPlaceAndLeftAtTheEnd) {
  auto live = display(DisplayMode::kLive);
  live.on_event(step_finished(0, 1));
  live.on_event(step_finished(1, 1));  // too soon to redraw
  EXPECT_THAT(capture_.out(), Not(HasSubstr("2/100")));
  live.end();
  EXPECT_THAT(capture_.out(), HasSubstr("\x1b[J"));
  EXPECT_THAT(capture_.out(), HasSubstr("2/100"));
}

TEST_F(DisplayTest, JsonHasNothingButEventsOnStdout) {
  auto json = display(DisplayMode::kJson);
  json.on_event(step_finished(0, 1));
  json.on_event(incident());
  json.end();
  EXPECT_THAT(capture_.out(), testing::StartsWith("{\"event\":\"step_finished\""));
  EXPECT_THAT(capture_.out(), HasSubstr("\n{\"event\":\"incident\""));
}

TEST_F(DisplayTest, IncidentsGoToStderr) {
  auto plain = display(DisplayMode::kPlain);
  plain.on_event(incident());
  EXPECT_THAT(capture_.error(), HasSubstr("b0"));
  EXPECT_THAT(capture_.error(), HasSubstr("step 12"));
  EXPECT_EQ(capture_.out(), "");
}

}  // namespace
}  // namespace holmes::launcher
