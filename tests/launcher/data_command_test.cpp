// Goal: `holmes data` makes data sets and tokenizers that the model reads, with any number of
// threads the same, and leaves nothing when it fails. Method: run the command in a folder.
#include "data_command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "capture_console.hpp"
#include "holmes/model/data.hpp"
#include "holmes/model/tokenizer.hpp"

namespace holmes::launcher {
namespace {

using ::testing::HasSubstr;

class DataCommandTest : public ::testing::Test {
 protected:
  int run(DataCommand command) {
    command.quiet = true;
    return data(command, capture_.console(), clock_);
  }
  DataCommand command(DataCommand::Action action, const std::string& out) const {
    DataCommand result;
    result.action = action;
    result.source.inputs = {folder_.path() / "in.jsonl"};
    result.out = folder_.path() / out;
    return result;
  }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_.path() / name, std::ios::binary) << content;
  }
  std::size_t files() const {
    using Entries = std::filesystem::directory_iterator;
    return static_cast<std::size_t>(std::distance(Entries(folder_.path()), Entries()));
  }

  TemporaryFolder folder_;
  CaptureConsole capture_;
  SteadyClock clock_;
};

TEST_F(DataCommandTest, LearnsATokenizerAndBuildsWithIt) {
  std::string lines;
  for (int i = 0; i < 20'000; ++i)
    lines += nlohmann::json{{"text", "the quick number " + std::to_string(i)}}.dump() + "\n";
  write("in.jsonl", lines);
  auto learn = command(DataCommand::Action::kLearn, "t.json");
  learn.vocabulary = 400;
  ASSERT_EQ(run(learn), 0) << capture_.error();
  for (const std::uint32_t threads : {1U, 3U}) {
    auto build = command(DataCommand::Action::kBuild, "set" + std::to_string(threads));
    build.tokenizer = learn.out.string();
    build.threads = threads;
    ASSERT_EQ(run(build), 0) << capture_.error();
  }
  for (const char* suffix : {".bin", ".idx"})
    EXPECT_EQ(read_file(folder_.path() / (std::string("set1") + suffix)),
              read_file(folder_.path() / (std::string("set3") + suffix)));
  const auto tokenizer = model::make_tokenizer(learn.out.string());
  const auto set = model::open_indexed_tokens(folder_.path() / "set1", 400);
  ASSERT_TRUE(tokenizer && set);
  std::vector<std::int32_t> tokens((*set)->token_count());
  (*set)->read(0, tokens);
  EXPECT_THAT((*tokenizer)->decode(tokens),
              ::testing::StartsWith("the quick number 0<|endoftext|>the quick number 1<|end"));
  auto inspect = command(DataCommand::Action::kInspect, "set1");
  EXPECT_EQ(run(inspect), 0);
  EXPECT_THAT(capture_.out(), HasSubstr("20000 documents"));
}

TEST_F(DataCommandTest, BadInputLeavesNothing) {
  write("in.jsonl", "{\"text\":\"good\"}\n{\"body\":\"bad\"}\n");
  EXPECT_EQ(run(command(DataCommand::Action::kBuild, "set")), 2);
  EXPECT_THAT(capture_.error(), HasSubstr("in.jsonl:2: the object has no key \"text\""));
  EXPECT_EQ(run(command(DataCommand::Action::kLearn, "t.json")), 2);
  EXPECT_EQ(files(), 1);
  EXPECT_EQ(run(command(DataCommand::Action::kInspect, "set")), 2);
}

TEST_F(DataCommandTest, ReplacesOnlyWhenAsked) {
  write("in.jsonl", "{\"text\":\"good\"}\n");
  EXPECT_EQ(run(command(DataCommand::Action::kBuild, "set")), 0);
  EXPECT_EQ(run(command(DataCommand::Action::kBuild, "set")), 2);
  EXPECT_THAT(capture_.error(), HasSubstr("is there already"));
  auto again = command(DataCommand::Action::kBuild, "set");
  again.overwrite = true;
  EXPECT_EQ(run(again), 0);
  auto small = command(DataCommand::Action::kLearn, "t.json");
  small.vocabulary = 100;
  EXPECT_EQ(run(small), 2);
}

}  // namespace
}  // namespace holmes::launcher
