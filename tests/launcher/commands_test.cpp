// Goal: plan prints what would run; generate finds the checkpoint it was pointed at, and both
// refuse what is missing with exit code 2 and its name.
#include "commands.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "capture_console.hpp"

namespace holmes::launcher {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

const fs::path kFourHosts = fs::path(HOLMES_SOURCE) / "examples/two-clusters.toml";

class Commands : public testing::Test {
 protected:
  Commands() {
    write_file(folder_.path() / "text.txt", std::string(10'000, 'x'));
    write_file(job(), "[data]\ntext = \"text.txt\"\n[train]\nsteps = 3\n");
  }
  fs::path job() const { return folder_.path() / "job.toml"; }

  TemporaryFolder folder_;
  CaptureConsole capture_;
};

TEST_F(Commands, PlanPrintsWhatWouldRun) {
  EXPECT_EQ(show_plan({job(), {}, true}, capture_.console()), 0) << capture_.error();
  EXPECT_EQ(nlohmann::json::parse(capture_.out())["stages"].size(), 1U);
}

TEST_F(Commands, PlanExplainsItselfToPeople) {
  EXPECT_EQ(show_plan({job(), {}, false}, capture_.console()), 0) << capture_.error();
  EXPECT_THAT(capture_.out(), HasSubstr("stage"));
}

TEST_F(Commands, ComparingHasEveryStrategyInJsonToo) {
  PlanCommand command{job(), {}, true};
  command.compare = true;
  EXPECT_EQ(show_plan(command, capture_.console()), 0) << capture_.error();
  const auto rows = nlohmann::json::parse(capture_.out())["strategies"];
  ASSERT_EQ(rows.size(), static_cast<std::size_t>(partition::kStrategyLast) + 1);
  for (const auto& row : rows) EXPECT_GT(row["step_s"], 0) << row;
}

TEST_F(Commands, ThePlanInJsonHasWhatCameSecond) {
  EXPECT_EQ(show_plan({kFourHosts, {"parallel.strategy=auto"}, true}, capture_.console()), 0);
  const auto plan = nlohmann::json::parse(capture_.out());
  ASSERT_FALSE(plan["runners_up"].empty());
  EXPECT_GE(plan["runners_up"][0]["step_s"], plan["predicted"]["step_s"]);
}

TEST_F(Commands, PeopleReadWhatCameSecondWhenTheyAsk) {
  PlanCommand command{kFourHosts, {"parallel.strategy=auto"}};
  EXPECT_EQ(show_plan(command, capture_.console()), 0) << capture_.error();
  EXPECT_THAT(capture_.out(), HasSubstr("schedule network-aware: "));
  EXPECT_THAT(capture_.out(), Not(HasSubstr("runner-up")));
  command.explain = true;
  EXPECT_EQ(show_plan(command, capture_.console()), 0) << capture_.error();
  for (const char* what : {"schedule gpipe", "blocks ", "other devices", "3 stages"})
    EXPECT_THAT(capture_.out(), HasSubstr(std::string("  runner-up with ") + what));
  command.overrides.clear();
  EXPECT_EQ(show_plan(command, capture_.console()), 0) << capture_.error();
  EXPECT_THAT(capture_.out(), HasSubstr("schedule 1f1b: "));
  EXPECT_THAT(capture_.out(), HasSubstr("  no runner-up: the job says how to plan"));
  command = {job(), {"parallel.strategy=auto"}, false, true};
  EXPECT_EQ(show_plan(command, capture_.console()), 0) << capture_.error();
  EXPECT_THAT(capture_.out(), HasSubstr("  no runner-up: there is no other plan"));
}

TEST_F(Commands, ShortMemoryIsMarkedWithTheDeviceAndItsHost) {
  write_file(folder_.path() / "c.toml",
             "[[host]]\nname = \"h\"\n[[host.device]]\nmemory_gib = 0.18\n");
  const std::vector<std::string> small{"cluster.file=" + (folder_.path() / "c.toml").string()};
  EXPECT_EQ(show_plan({job(), small}, capture_.console()), 0) << capture_.error();
  EXPECT_THAT(capture_.out(), HasSubstr("memory is short: device 0 of host h lacks "));
  PlanCommand command{job(), small};
  command.compare = true;
  EXPECT_EQ(show_plan(command, capture_.console()), 0) << capture_.error();
  EXPECT_THAT(capture_.out(), HasSubstr("memory is short by "));
}

TEST_F(Commands, PlanRefusesWrongKeys) {
  EXPECT_EQ(show_plan({job(), {"train.stps=3"}, false}, capture_.console()), 2);
  EXPECT_THAT(capture_.error(), HasSubstr("stps"));
  EXPECT_EQ(capture_.out(), "");
}

TEST_F(Commands, KeysAreListed) {
  EXPECT_EQ(show_keys(capture_.console()), 0);
  EXPECT_THAT(capture_.out(), HasSubstr("steps"));
}

TEST_F(Commands, DocumentationListsTheSameKeys) {
  show_keys(capture_.console());
  const std::string page = read_file(fs::path(HOLMES_SOURCE) / "docs/configuration.md");
  EXPECT_THAT(page, HasSubstr("```text\n" + capture_.out() + "```\n")) << "run scripts/docs";
}

TEST_F(Commands, GenerateNamesAMissingCheckpoint) {
  GenerateCommand command;
  command.checkpoint = folder_.path() / "nothing";
  command.prompt = "x";
  EXPECT_EQ(generate(command, capture_.console()), 2);
  EXPECT_THAT(capture_.error(), HasSubstr("nothing"));
  EXPECT_EQ(capture_.out(), "");
}

TEST_F(Commands, ARunFolderMeansItsNewestCheckpoint) {
  const fs::path run = folder_.path() / "run";
  for (const char* name : {"step-00000002", "step-00000010"}) {
    fs::create_directories(run / "checkpoints" / name);
    write_file(run / "checkpoints" / name / "manifest.json", "{}");
  }
  const fs::path newest = run / "checkpoints/step-00000010";
  EXPECT_EQ(find_checkpoint(run).value_or(""), newest);
  EXPECT_EQ(find_checkpoint(run / "checkpoints").value_or(""), newest);
  const fs::path older = run / "checkpoints/step-00000002";
  EXPECT_EQ(find_checkpoint(older).value_or(""), older);
  EXPECT_FALSE(find_checkpoint(folder_.path()));
}

}  // namespace
}  // namespace holmes::launcher
