// Goal: simulate prints figures for people and tools, writes a timeline and a picture where it is
// told to, and refuses what makes no sense with exit code 2; ablations change what they name.
// Method: the command on the demo's clusters.
#include "simulate.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "capture_console.hpp"
#include "commands.hpp"

namespace holmes::launcher {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class SimulateCommandTest : public testing::Test {
 protected:
  SimulateCommandTest() { command_.job = fs::path(HOLMES_SOURCE) / "examples/two-clusters.toml"; }

  nlohmann::json figures() {
    CaptureConsole capture;
    command_.json = true;
    EXPECT_EQ(simulate(command_, capture.console()), 0) << capture.error();
    return nlohmann::json::parse(capture.out());
  }

  TemporaryFolder folder_;
  SimulateCommand command_;
  CaptureConsole capture_;
};

TEST_F(SimulateCommandTest, PrintsWhereTheTimeGoes) {
  EXPECT_EQ(simulate(command_, capture_.console()), 0) << capture_.error();
  for (const char* word :
       {"samples/s", "bubble", "stage 1", "what a step sends", "ethernet", "not calibrated"}) {
    EXPECT_THAT(capture_.out(), HasSubstr(word));
  }
  EXPECT_EQ(capture_.error(), "");
}

TEST_F(SimulateCommandTest, JsonAddsUp) {
  const auto json = figures();
  EXPECT_EQ(json["strategy"], "holmes");
  EXPECT_FALSE(json["calibrated"].get<bool>());
  for (const auto& device : json["devices"]) {
    double sum = 0;
    for (const char* part :
         {"forward_s", "backward_s", "optimizer_s", "transfer_s", "bubble_s", "collective_s"}) {
      sum += device[part].get<double>();
    }
    EXPECT_NEAR(sum, json["step_s"].get<double>(), 1e-6);
  }
  EXPECT_EQ(json["steps"].size(), 2U);
}

TEST_F(SimulateCommandTest, WritesTimelineAndPicture) {
  command_.trace = folder_.path() / "trace.json";
  command_.svg = folder_.path() / "picture.svg";
  EXPECT_EQ(simulate(command_, capture_.console()), 0) << capture_.error();
  EXPECT_FALSE(nlohmann::json::parse(read_file(command_.trace))["traceEvents"].empty());
  EXPECT_THAT(read_file(command_.svg), HasSubstr("kjv"));
  command_.svg = folder_.path() / "nowhere" / "picture.svg";
  EXPECT_NE(simulate(command_, capture_.console()), 0);
  EXPECT_THAT(capture_.error(), HasSubstr("cannot write"));
}

TEST_F(SimulateCommandTest, ChangesComeFromTheCommandLineAndFromAFile) {
  command_.steps = 40;
  const double even_s = figures()["step_s"];
  write_file(folder_.path() / "changes", "# later\n\nfabric ethernet at 1 s to 0.02  # slow\n");
  command_.changes_file = folder_.path() / "changes";
  EXPECT_GT(figures()["step_s"].get<double>(), 1.2 * even_s);
  command_.changes = {"host b1 at 5 s dies"};
  const auto json = figures();
  EXPECT_EQ(json["segments"].size(), 2U);
  EXPECT_EQ(json["segments"][1]["hosts"], 3);
  EXPECT_EQ(json["steps"].size(), 40U);
  command_.json = false;
  EXPECT_EQ(simulate(command_, capture_.console()), 0);
  EXPECT_THAT(capture_.out(), HasSubstr("host b1 died at 5 s"));
  EXPECT_THAT(capture_.out(), HasSubstr("planned anew for 3 hosts"));
}

TEST_F(SimulateCommandTest, WrongChangesExit2WithTheirPlace) {
  write_file(folder_.path() / "changes", "\nhost b9 at 5 s dies\n");
  command_.changes_file = folder_.path() / "changes";
  EXPECT_EQ(simulate(command_, capture_.console()), 2);
  EXPECT_THAT(capture_.error(), HasSubstr("changes:2: "));
  EXPECT_THAT(capture_.error(), HasSubstr("no host 'b9'"));
}

TEST_F(SimulateCommandTest, AblationsNeverMakeItFaster) {
  const double whole_s = figures()["step_s"];
  for (bool Ablations::*part : {&Ablations::self_adapting, &Ablations::overlapped_optimizer,
                                &Ablations::nic_selection, &Ablations::overlapped_transfers}) {
    command_.ablations = {};
    command_.ablations.*part = false;
    EXPECT_GE(figures()["step_s"].get<double>(), whole_s * (1 - 1e-9));
  }
  command_.ablations = {};
  command_.ablations.nic_selection = false;
  EXPECT_GT(figures()["step_s"].get<double>(), whole_s * 1.01);
}

TEST_F(SimulateCommandTest, EqualSplitHoldsForAutoToo) {
  command_.overrides = {"parallel.strategy=auto"};
  command_.ablations.self_adapting = false;
  const auto stages = figures()["stages"];
  int least = 1000;
  int most = 0;
  for (const auto& stage : stages) {
    const int blocks = stage["layers"][1].get<int>() - stage["layers"][0].get<int>() + 1;
    least = std::min(least, blocks);
    most = std::max(most, blocks);
  }
  EXPECT_LE(most - least, 1);
}

TEST(Compare, SaysWhenPrecisionsDiffer) {
  CaptureConsole capture;
  PlanCommand command;
  command.job = fs::path(HOLMES_SOURCE) / "examples/two-clusters.toml";
  command.compare = true;
  EXPECT_EQ(show_plan(command, capture.console()), 0) << capture.error();
  EXPECT_THAT(capture.out(), HasSubstr("megatron-llama"));
  EXPECT_THAT(capture.out(), HasSubstr("half precision"));
}

}  // namespace
}  // namespace holmes::launcher
