// Goal: the file of measured cells is read as it is meant, or the line that is wrong is named; the
// command prints constants that can be pasted into a job. Method: small files beside the examples.
#include "fit.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "capture_console.hpp"

namespace holmes::launcher {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class FitCommand : public testing::Test {
 protected:
  fs::path cells(const std::string& lines) {
    std::string text;
    for (const char letter : lines) {
      if (letter == '@')
        text += (fs::path(HOLMES_SOURCE) / "examples").string();
      else
        text += letter;
    }
    write_file(folder_.path() / "cells.csv", text);
    return folder_.path() / "cells.csv";
  }

  TemporaryFolder folder_;
  CaptureConsole capture_;
};

constexpr const char* kOne = "one, @/two-clusters.toml, @/clusters/two-clusters.toml, ";

TEST_F(FitCommand, ReadsMeasuresAndOverrides) {
  const auto read =
      read_cells(cells("# people\n\n" + std::string(kOne) +
                       "train.batch=64 train.micro_batch=8, step_s, 2.5\n" + kOne +
                       ", samples_per_s, 16 # why\n" + kOne + ", tflops_per_device, 0.05\n"),
                 {"train.seed=3"});
  ASSERT_TRUE(read) << read.error().message();
  ASSERT_EQ(read->size(), 3U);
  EXPECT_EQ((*read)[0].name, "one");
  EXPECT_EQ((*read)[0].job.batch, 64U);
  EXPECT_EQ((*read)[0].measured_step_s, 2.5);
  EXPECT_EQ((*read)[1].measured_step_s, 2);
  EXPECT_NEAR((*read)[2].measured_step_s,
              partition::paper_flops((*read)[2].model) * 32 / (0.05e12 * 4), 1e-9);
}

TEST_F(FitCommand, NamesTheLineThatIsWrong) {
  for (const auto& [line, what] : std::vector<std::pair<std::string, std::string>>{
           {"one, two", "2 parts instead of 6"},
           {std::string(kOne) + ", step_s, -1", "'-1' is no positive number"},
           {std::string(kOne) + ", step_s, 1x", "'1x' is no positive number"},
           {std::string(kOne) + ", steps, 1", "none of step_s"},
           {std::string(kOne) + "train.bach=1, step_s, 1", "bach"},
           {"one, @/nothing.toml, @/clusters/two-clusters.toml, , step_s, 1", "nothing.toml"}}) {
    const auto read = read_cells(cells("\n" + line + "\n"), {});
    ASSERT_FALSE(read) << line;
    EXPECT_THAT(read.error().message(), HasSubstr("cells.csv:2: "));
    EXPECT_THAT(read.error().message(), HasSubstr(what));
  }
  EXPECT_FALSE(read_cells(folder_.path() / "nowhere", {}));
}

TEST_F(FitCommand, PrintsConstantsAndErrors) {
  SimulateCommand command;
  command.fit = cells(std::string(kOne) + ", step_s, 0.5\n");
  EXPECT_EQ(fit(command, capture_.console()), 0) << capture_.error();
  EXPECT_THAT(capture_.out(), HasSubstr("[cost]\ncompute_efficiency = 0."));
  EXPECT_THAT(capture_.out(), HasSubstr("not known"));
  command.json = true;
  CaptureConsole json;
  EXPECT_EQ(fit(command, json.console()), 0);
  EXPECT_LT(std::abs(nlohmann::json::parse(json.out())["cells"][0]["error"].get<double>()), 0.01);
  command.fit = folder_.path() / "nowhere";
  EXPECT_EQ(fit(command, capture_.console()), 2);
}

}  // namespace
}  // namespace holmes::launcher
