// Goal: every benchmark ends, whichever rank is done first, and says what it measured; wrong
// questions are refused. Method: the command itself, with real processes and very short turns. A
// rank that leaves while another waits for it would hang for a minute: the test's time-out.
#include "bench/bench.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "capture_console.hpp"

namespace holmes::launcher {
namespace {

using ::testing::HasSubstr;

struct Ran {
  int code = 0;
  std::string error;
  nlohmann::json json;
};

Ran run(const std::string& what, std::uint32_t ranks, std::uint64_t bytes, bool tls = false) {
  BenchCommand command;
  command.what = what;
  command.ranks = ranks;
  command.bytes = bytes;
  command.seconds = 0.01;
  command.json = true;
  command.tls = tls;
  CaptureConsole console;
  const int code = bench(command, console.console());
  return {code, console.error(), code == 0 ? nlohmann::json::parse(console.out()) : nullptr};
}

TEST(Bench, PointToPointEndsAtBothEnds) {
  for (const std::uint64_t bytes : {4ULL, 70'000ULL}) {
    const auto ran = run("p2p", 2, bytes);
    ASSERT_EQ(ran.code, 0) << ran.error;
    EXPECT_GT(ran.json["bus_gbytes_per_s"], 0.0);
    EXPECT_GT(ran.json["round_trip_64_us_median"], 0.0);
    EXPECT_GT(ran.json["share_of_raw_median"], 0.0);
  }
}

TEST(Bench, CollectivesEndAtAllRanks) {
  for (const auto* what : {"allreduce", "reduce-scatter"}) {
    const auto ran = run(what, 3, 4096);
    ASSERT_EQ(ran.code, 0) << ran.error;
    EXPECT_EQ(ran.json["ranks"], 3);
    EXPECT_GT(ran.json["latency_us_median"], 0.0);
  }
}

TEST(Bench, UnderTls) {
  EXPECT_EQ(run("p2p", 2, 70'000, true).code, 0);
  const auto ran = run("allreduce", 3, 4096, true);
  ASSERT_EQ(ran.code, 0) << ran.error;
  EXPECT_EQ(ran.json["tls"], true);
}

TEST(Bench, WrongQuestionsAreRefused) {
  EXPECT_EQ(run("p2p", 3, 4096).code, 2);
  EXPECT_EQ(run("allreduce", 1, 4096).code, 2);
  const auto odd = run("allreduce", 2, 4098);
  EXPECT_EQ(odd.code, 2);
  EXPECT_THAT(odd.error, HasSubstr("--bytes"));
}

}  // namespace
}  // namespace holmes::launcher
